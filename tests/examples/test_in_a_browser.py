"""The pages of the examples, as a user sees and uses them in Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.examples.conftest import Visitor, new_board, new_user, order_of
from tests.support.browser import PHONE, WIDE, Browser, Page, connected, running_browser
from tests.support.demo import Demo
from tests.support.waiting import async_wait_until

pytestmark = [
    pytest.mark.usefixtures("chromium"),
    # what differs between the servers shows without a browser, too
    pytest.mark.parametrize("flavour", ["mariadb"], indirect=True, scope="session"),
]


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_browser(tmp_path_factory.mktemp("browser")) as url:
        yield url


@pytest.fixture
async def browser(window: str) -> AsyncIterator[Browser]:
    async with connected(window) as running:
        yield running


async def signed_in(browser: Browser, visitor: Visitor, address: str = "") -> Page:
    """A page that `visitor` sees."""
    page = await browser.page(visitor.url)
    name = visitor.get("/api/session")["user"]["username"]
    await page.write("input[name=username]", name)
    await page.key("Enter", 13)
    await page.wait_for("document.querySelector('.me button')")
    await page.send("Page.navigate", url=f"{visitor.url}/{address}")
    return page


async def show(page: Page, address: str) -> None:
    """Go there, and wait until it is there."""
    empty = "document.querySelector('main').replaceChildren()"
    await page.evaluate(f"{empty}, location.hash = '#/ids/', location.hash = '{address}'")
    await page.wait_for("document.querySelector('main').children.length")


async def shows(page: Page, pins: list[int]) -> None:
    """That these are the pins, in this order."""
    shown = "[...document.querySelectorAll('.pin')].map(pin => pin.dataset.id).join()"
    await page.wait_for(f"{shown} == '{','.join(map(str, pins))}'")


def pin(number: int) -> str:
    """A selector."""
    return f'.pin[data-id="{number}"]'


async def test_a_pin_is_dragged(browser: Browser, fleet: Demo, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    board, [a, b, c, d] = new_board(visitor, 4)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    await shows(page, [a, b, c, d])
    await page.drag(pin(d), pin(b), x=0.2)
    await shows(page, [a, d, b, c])
    await async_wait_until(lambda: order_of(fleet, board) == [a, d, b, c], "the order in the database")
    await page.drag(pin(a), pin(c), x=0.8)
    await async_wait_until(lambda: order_of(fleet, board) == [d, b, c, a], "the order in the database")
    await page.drag(pin(d), pin(c), x=0.8, drop=False)
    await shows(page, [d, b, c, a])
    await page.reload()
    await shows(page, [d, b, c, a])
    assert page.complaints == []


async def test_a_finger_drags_by_the_grip(browser: Browser, fleet: Demo, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    board, [a, b, c] = new_board(visitor, 3)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    await page.look(PHONE)
    await shows(page, [a, b, c])
    await page.drag_by_finger(pin(c), pin(a))  # that scrolls, if anything
    await page.drag_by_finger(pin(b) + " .grip", pin(a), x=0.1)
    await shows(page, [b, a, c])
    await async_wait_until(lambda: order_of(fleet, board) == [b, a, c], "the order in the database")
    assert page.complaints == []


async def test_moves_in_a_row_are_kept_in_order(browser: Browser, fleet: Demo, pinboard: str) -> None:
    """Each is told with the neighbours that those before it have made."""
    visitor, _ = new_user(pinboard)
    board, [a, b, c, d, e] = new_board(visitor, 5)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    await shows(page, [a, b, c, d, e])
    click = f"document.querySelector('{pin(e)} .earlier').click()"
    await page.evaluate(";".join([click] * 4))
    await async_wait_until(lambda: order_of(fleet, board) == [e, a, b, c, d], "the order in the database")
    await shows(page, [e, a, b, c, d])
    assert await page.texts("#toast") == [""]


async def test_a_pin_is_moved_by_keys(browser: Browser, fleet: Demo, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    board, [a, b, c] = new_board(visitor, 3)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    await shows(page, [a, b, c])
    await page.evaluate(f"document.querySelector('{pin(c)} .earlier').focus()")
    for order in ([a, c, b], [c, a, b]):
        await page.key("Enter", 13)
        await shows(page, order)
        await page.wait_for(
            f"document.querySelector('#place').textContent == 'Now in place {order.index(c) + 1}'"
        )
        assert order_of(fleet, board) == order


async def test_who_has_an_old_page_is_told(browser: Browser, fleet: Demo, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    board, [a, b, c, d, e] = new_board(visitor, 5)
    first, second = [await signed_in(browser, visitor, f"#/boards/{board}") for _ in range(2)]
    for page in (first, second):
        await shows(page, [a, b, c, d, e])
    await first.drag(pin(a), pin(e), x=0.8)
    await async_wait_until(lambda: order_of(fleet, board) == [b, c, d, e, a], "the first one's order")
    # Where the other wants it, behind a and ahead of b, is no place any more
    await second.drag(pin(d), pin(b), x=0.2)
    await second.wait_for("document.querySelector('#toast').textContent.includes('meanwhile')")
    assert order_of(fleet, board) == [b, c, d, e, a]
    await shows(second, [b, c, d, e, a])


async def test_a_long_board(browser: Browser, fleet: Demo, pinboard: str) -> None:
    """Pins come as one scrolls; the last one that is shown has a neighbour that is not."""
    visitor, _ = new_user(pinboard)
    board, pins = new_board(visitor, 55)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    count = "document.querySelectorAll('.pin').length"
    await page.wait_for(f"{count} == 24")
    moved = f"document.querySelector('{pin(pins[23])} .earlier').click()"
    await page.evaluate(f"document.querySelector('{pin(pins[22])} .later').click(), {moved}")
    await page.wait_for(f"{count} > 24")
    await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    await page.wait_for(f"{count} == 48")
    await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    await page.wait_for(f"{count} == 55")


HOSTILE = '<img src=x onerror="hacked=1"><script>hacked=1</script>\'"&lt;'


async def test_what_users_write_stays_text(browser: Browser, pinboard: str, photos: str) -> None:
    visitor, user = new_user(pinboard)
    board = visitor.do("POST", "/api/boards", {"name": HOSTILE, "description": HOSTILE})["id"]
    link = 'https://example.com/"><script>hacked=1</script>'
    visitor.do("POST", f"/api/boards/{board}/pins", {"details": HOSTILE, "link": link})
    visitor.do("PUT", f"/api/boards/{board}/follow")
    page = await signed_in(browser, visitor, f"#/users/{user}")
    for address, place in ((f"users/{user}", ".board h3"), (f"boards/{board}", ".pin h3"), ("", ".pin h3")):
        await show(page, f"#/{address}")
        assert await page.texts(place) == [HOSTILE]
    assert await page.texts(".pin .words a") == ["example.com", HOSTILE]
    photo = Visitor(photos)
    photo.do("POST", "/api/session", {"username": visitor.get("/api/session")["user"]["username"]})
    made = photo.do("POST", "/api/photos", {"caption": HOSTILE})
    other = await signed_in(browser, photo, f"#/photos/{made['id']}")
    await other.wait_for("document.querySelector('.photo')")
    assert await other.texts(".photo .words p") == [HOSTILE]
    for one in (page, other):
        assert await one.evaluate("typeof hacked") == "undefined"
        assert await one.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert one.complaints == []


async def test_who_clicks_twice_does_it_once(browser: Browser, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    board, _ = new_board(visitor, 1)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    await page.write("input[name=details]", "Once")
    await page.wait_for("document.querySelector('.pin .heart')")
    clicks = ["form button"] * 3 + [".pin .heart"] * 2  # at once: what they do changes the page
    await page.evaluate(",".join(f"document.querySelector('{one}').click()" for one in clicks) + ",0")
    await page.wait_for("document.querySelectorAll('.pin').length == 2")
    assert len(visitor.get(f"/api/boards/{board}/pins")["pins"]) == 2
    assert await page.texts("main .row span:first-child") == ["2 pins"]
    assert page.complaints == []


async def test_back_leads_to_where_one_was(browser: Browser, pinboard: str) -> None:
    visitor, user = new_user(pinboard)
    board, _ = new_board(visitor, 55)
    page = await signed_in(browser, visitor, f"#/boards/{board}")
    shown = "document.querySelectorAll('.pin').length"
    for number in (24, 48):
        await page.wait_for(f"{shown} == {number}")
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
    await page.wait_for(f"{shown} == 55")
    await page.evaluate("scrollTo(0, 900)")
    await page.evaluate(f"location.hash = '#/users/{user}'")
    await page.wait_for("document.querySelector('.board')")
    assert await page.evaluate("scrollY") == 0
    await page.evaluate("history.back()")
    await page.wait_for(f"{shown} == 55 && scrollY == 900")
    assert page.complaints == []


async def test_what_cannot_be_shown(browser: Browser, pinboard: str) -> None:
    visitor, _ = new_user(pinboard)
    page = await signed_in(browser, visitor, "#/boards/5")
    await page.wait_for("document.querySelector('.empty p')?.textContent == 'There is no such board.'")
    await page.click(".empty a")
    await page.wait_for("document.querySelector('.board')")
    # the server is away
    await page.send("Network.enable")
    network = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    await page.send("Network.emulateNetworkConditions", offline=True, **network)
    await page.evaluate("location.hash = '#/discover'")
    await page.wait_for("document.querySelector('.empty p')?.textContent.includes('cannot be reached')")
    await page.send("Network.emulateNetworkConditions", offline=False, **network)
    await page.click(".empty button")
    await page.wait_for("document.querySelector('.board')")
    # signed out elsewhere
    options = "{method: 'DELETE', headers: {'Content-Type': 'application/json'}}"
    await page.evaluate(f"fetch('/api/session', {options})")
    await page.evaluate("location.hash = '#/'")
    await page.wait_for("document.querySelector('.chips')")
    assert page.complaints == []


async def test_pinning_and_liking(browser: Browser, pinboard: str) -> None:
    """All that a newcomer does first, with the mouse and the keyboard."""
    page = await browser.page(pinboard)
    await page.write("input[name=username]", "by.hand")
    await page.key("Enter", 13)
    await page.wait_for("document.querySelector('.me button')")
    await page.click("#mine")
    await page.write("input[name=name]", "Ways to cook rice")
    await page.click("form button")
    await page.write("input[name=details]", "Risotto")
    await page.write("input[name=link]", "https://example.com/rice")
    await page.key("Enter", 13)
    await page.wait_for("document.querySelector('.pin')")
    assert await page.texts("h1") == ["Ways to cook rice"]
    assert await page.texts(".pin h3, .pin a") == ["Risotto", "example.com"]
    for likes in ("1", "0"):
        await page.click(".pin .heart")
        await page.wait_for(f"document.querySelector('.pin .heart').textContent == '{likes}'")
    await page.click(".me button")
    await page.wait_for("document.querySelector('.chips button')")
    assert page.complaints == []


async def test_a_photo_and_its_id(browser: Browser, photos: str) -> None:
    visitor, user = new_user(photos)
    page = await signed_in(browser, visitor)
    await page.write("input[name=caption]", "The sea")
    await page.key("Enter", 13)
    await page.wait_for("document.querySelector('.photo')")
    assert await page.texts(".photo .words p") == ["The sea"]
    await page.click(".photo .heart")
    await page.wait_for("document.querySelector('.photo .heart').textContent == '1'")
    await page.click(".photo a")
    await page.wait_for("document.querySelector('.bits')")
    [number] = await page.texts(".number")
    [bits] = await page.texts(".bits")
    assert bits.split() == [f"{int(number):064b}"[a:b] for a, b in ((0, 41), (41, 54), (54, 64))]
    assert (await page.texts(".panel .id .shard"))[0] == f"shard{user % 64}"
    await page.evaluate("location.hash = '#/ids'")
    await page.write("input[name=id]", number)
    await page.key("Enter", 13)
    await page.wait_for("document.querySelector('.photo .heart')?.textContent == '1'")
    assert page.complaints == []


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_it_fits(
    browser: Browser, pinboard: str, photos: str, size: tuple[int, int], dark: bool
) -> None:
    """Nothing is wider than the window, and a dark page is dark."""
    for url, most in ((pinboard, "#/discover"), (photos, "#/discover")):
        visitor, user = new_user(url)
        page = await signed_in(browser, visitor)
        await page.look(size, dark=dark)
        for address in ("#/", most, f"#/users/{user}", "#/nowhere"):
            await page.evaluate(
                f"location.hash = '{address}', document.querySelector('main').replaceChildren()"
            )
            await page.wait_for("document.querySelector('main').children.length")
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        colour = await page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/)[0]")
        assert (int(colour) < 60) == dark
        assert page.complaints == []
