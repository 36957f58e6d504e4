"""The status page as an operator sees it, in Chromium: charts, the map, tables to sort."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.integration.fixtures import MakeOwn, MakeRaw, shard_of
from tests.integration.raw import Raw
from tests.support.browser import PHONE, WIDE, Browser, connected, find_browser, running_browser
from tests.support.demo import Demo

pytestmark = [
    pytest.mark.one_server,
    pytest.mark.skipif(find_browser() is None, reason="needs Chromium: chromium-headless-shell"),
]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_browser(tmp_path_factory.mktemp("browser")) as url:
        yield url


@pytest.fixture
async def browser(window: str) -> AsyncIterator[Browser]:
    async with connected(window) as running:
        yield running


def board(client: Raw) -> int:
    return int(client.ask("SELECT id FROM boards LIMIT 1").value or 0)


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_page_is_live(
    demo: Demo, raw: MakeRaw, browser: Browser, size: tuple[int, int], dark: bool
) -> None:
    client = raw()
    id = board(client)
    for _ in range(20):
        assert client.ask(f"SELECT data AS live FROM boards WHERE id = {id}").kind == "rows"
    page = await browser.page(demo.ready["status_url"], size=size, dark=dark)
    await page.wait_for("document.querySelectorAll('.chart path.line').length > 5")
    await page.wait_for("document.querySelector('[data-heat=main] canvas')")
    label = await page.evaluate("document.querySelector('[data-heat=main] canvas').ariaLabel")
    assert label.startswith("main: ")
    assert not label.startswith("main: 0 ")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.wait_for(f"document.querySelector('#hot').textContent.includes('main {shard_of(id)}')")
    colours = "[...document.querySelector('canvas').getContext('2d').getImageData(0, 0, 99, 9).data]"
    assert len(set(await page.evaluate(colours))) > 2
    assert page.complaints == []


async def test_tables_are_sorted_and_stay_so(demo: Demo, raw: MakeRaw, browser: Browser) -> None:
    client = raw()
    id = board(client)
    for number in range(3):
        for _ in range(number + 1):
            client.ask(f"SELECT data AS sorted_{'abc'[number]} FROM boards WHERE id = {id}")
    page = await browser.page(demo.ready["status_url"])
    await page.wait_for("document.querySelector('#digests button')")
    counts = (
        "[...document.querySelectorAll('#digests tbody tr')].map(row => Number(row.cells[3].dataset.value))"
    )
    click = "document.querySelectorAll('#digests th button')[3].click()"
    await page.evaluate(click)
    falling = await page.evaluate(counts)
    assert falling == sorted(falling, reverse=True)
    await page.evaluate(click)
    assert await page.evaluate(counts) == sorted(falling)
    assert await page.evaluate("document.querySelectorAll('#digests th')[3].ariaSort") == "ascending"
    await page.evaluate("document.querySelector('#digests').dataset.old = 'yes'")
    await page.wait_for("!document.querySelector('#digests').dataset.old")
    found = await page.evaluate(counts)
    assert found == sorted(found)
    await page.click("#live")
    assert await page.texts("#live") == ["paused"]
    assert page.complaints == []


async def test_a_long_statement_leaves_room_for_its_costs(own: MakeOwn, browser: Browser) -> None:
    shown = ", ".join(f"data AS long_{number}" for number in "abcdefgh")
    proxy = own()
    client = proxy.raw()
    assert client.ask(f"SELECT {shown} FROM boards WHERE id = {board(client)}").kind == "rows"
    address = proxy.proxy.status_url
    assert address is not None
    page = await browser.page(address, size=WIDE)
    await page.wait_for("document.querySelector('#digests').textContent.includes('long_h')")
    places = "[...document.querySelectorAll('#digests th')].map(one => one.getBoundingClientRect().right)"
    assert (await page.evaluate(places))[5] < WIDE[0]  # the mean time
