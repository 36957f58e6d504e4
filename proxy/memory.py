"""How a process that serves keeps its memory, once it has started."""

from __future__ import annotations

import ctypes
import gc
import sys

#: Seconds for which a thread that binds rows may hold up the loop.
_SWITCH = 0.0005
#: mallopt(3): M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, each with what it is set to.
_THRESHOLDS = ((-1, 16 << 20), (-3, 4 << 20))


def settle() -> None:
    """What was made at start stays: the garbage collector need not look at it again and again, nor at every
    700 objects for the rings that the data path does not make.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    sys.setswitchinterval(_SWITCH)
    _set_thresholds()
    give_back()


def give_back() -> None:
    """What imports have freed between blocks that stay is the system's again. (C libraries that have no
    malloc_trim keep it.)
    """
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _set_thresholds() -> None:
    """Blocks of 4 MB and more are the system's again as soon as they are freed; the C library would take them
    from its heap after it has seen one freed, up to 32 MB, and what lies above a hole there is kept: so what
    a client sent would stay after it is gone. But up to 16 MB at the heap's end are kept: rows by the 100 KB
    would else be fetched from the system page by page, again and again. (C libraries that have no mallopt do
    neither.)
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        for name, size in _THRESHOLDS:
            mallopt(name, size)
