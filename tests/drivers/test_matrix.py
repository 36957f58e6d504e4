"""Each client, through the proxy and directly: see the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.drivers import matrix
from tests.drivers.catalog import CATALOG, Client
from tests.drivers.conftest import Places


@pytest.mark.parametrize("client", CATALOG, ids=lambda client: client.name.replace(" ", "-"))
def test_client(client: Client, places: Places, flavour: str, tmp_path: Path) -> None:
    """Nothing that the client reports is another than on a plain server."""
    if flavour not in client.flavours:
        pytest.skip(f"{client.name} is for {', '.join(client.flavours)}")
    if missing := client.missing():
        pytest.skip(f"{client.name} needs {missing}: `make test` installs it where it can (.ci/drivers)")
    direct, proxy = places.run(client, tmp_path)
    differences = matrix.compare(direct, proxy)
    matrix.report(client, flavour, proxy, differences)
    assert not differences, "\n".join(map(str, differences))
