import { ask, element, form, heart, pages, say, start, tell, toggle } from "/common/common.js";

const place = document.querySelector("#place");

start([
  [/^#\/$/, feed],
  [/^#\/discover$/, discover],
  [/^#\/users\/(\d+)$/, userPage],
  [/^#\/boards\/(\d+)$/, boardPage],
]);

// --- views ------------------------------------------------------------------------------------------

async function feed() {
  const list = element("ol", { class: "pins" });
  const rows = pages(list, (cursor) => readPins("/api/feed", cursor), (pin) => card(pin, { board: pin.board }));
  await rows.more();
  if (list.children.length) return [element("h1", {}, "New on the boards you follow"), list, rows.button];
  return [
    element("h1", {}, "Your feed is empty"),
    element("p", { class: "soft" }, "Here is what boards have that you follow. These are the newest ones:"),
    await newestBoards(),
  ];
}

async function discover() {
  return [element("h1", {}, "The newest boards"), await newestBoards()];
}

async function userPage([, id], me) {
  const { user, boards } = await ask("GET", `/api/users/${id}`);
  const add = form("New board", [["name", "Name", { required: true, maxlength: 80 }], ["description", "What it is about", { maxlength: 300 }]], async (fields) => {
    location.hash = `#/boards/${(await ask("POST", "/api/boards", fields)).id}`;
  });
  return [
    element("div", {}, element("h1", {}, user.id === me.id ? "My boards" : user.name), element("p", { class: "soft" }, user.about)),
    user.id === me.id && element("section", { class: "panel" }, add),
    boards.length ? boardList(boards) : element("p", { class: "empty" }, "No boards yet."),
  ];
}

async function boardPage([, id], me) {
  const path = `/api/boards/${id}`;
  const { board, pins, user, following } = await ask("GET", path);
  const mine = board.user_id === me.id;
  const list = element("ol", { class: "pins" });
  const rows = pages(list, (cursor) => readPins(`${path}/pins`, cursor), (pin) => card(pin, { moves: mine && moves }));
  const move = mover(list, rows, path);
  const moves = { earlier: (pin) => move.step(pin, -1), later: (pin) => move.step(pin, 1) };
  const showWhole = () => list.classList.toggle("whole", rows.whole());
  new MutationObserver(showWhole).observe(list, { childList: true });
  if (mine) makeDraggable(list, move.save);
  await rows.more();

  const add = form("Add pin", [["details", "What it is", { required: true, maxlength: 200 }], ["link", "https://… (if it has a link)", { type: "url", maxlength: 500 }]], async (fields) => {
    await ask("POST", `${path}/pins`, fields);
    await rows.again();
  });
  return [
    element(
      "div",
      { class: "row" },
      element(
        "div",
        {},
        element("h1", {}, board.name),
        element("p", { class: "soft" }, board.description),
        element("p", { class: "soft" }, `${pins} pins by `, user && element("a", { href: `#/users/${user.id}` }, user.name), " ", shard(board)),
      ),
      element("div", { class: "end" }, mine ? null : toggle(following, `${path}/follow`, { off: "Follow", on: "Following" })),
    ),
    mine && element("section", { class: "panel" }, add, element("p", { class: "soft" }, "Drag a pin to another place, or use its arrows.")),
    list,
    rows.button,
  ];
}

// --- pieces -----------------------------------------------------------------------------------------

async function readPins(path, cursor) {
  const answer = await ask("GET", cursor ? `${path}?cursor=${cursor}` : path);
  return { items: answer.pins, cursor: answer.cursor };
}

// `board`: the one to name. `moves`: what its arrows do, if it can be moved.
function card(pin, { board, moves }) {
  const item = element(
    "li",
    { class: "pin", draggable: moves ? "true" : null, "data-id": pin.id },
    art(pin.id),
    element(
      "div",
      { class: "words" },
      element("h3", {}, pin.details),
      link(pin.link),
      board && element("a", { class: "soft", href: `#/boards/${board.id}` }, board.name),
    ),
    element("div", { class: "foot" }, shard(pin), element("span", { class: "end" }, heart(pin, `/api/pins/${pin.id}/like`))),
  );
  if (moves)
    item.append(
      element(
        "div",
        { class: "moves" },
        arrow("earlier", "M15 5 8 12l7 7", pin, () => moves.earlier(item)),
        arrow("later", "M9 5l7 7-7 7", pin, () => moves.later(item)),
      ),
    );
  return item;
}

function arrow(name, d, pin, click) {
  const attributes = { class: name, "aria-label": `Move ${pin.details} ${name}`, click: tell(click) };
  const path = element("svg:path", { d, fill: "none", stroke: "currentColor", "stroke-width": 2.5 });
  return element("button", attributes, element("svg:svg", { viewBox: "0 0 24 24", width: 20, height: 20 }, path));
}

// Only an address of the web becomes a link.
function link(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!["http:", "https:"].includes(url?.protocol)) return null;
  return element("a", { class: "soft", href: url.href, rel: "noopener", target: "_blank", draggable: "false" }, url.host);
}

const shard = ({ shard }) => element("span", { class: "tag", title: "The shard that its ID names" }, `shard ${shard}`);

async function newestBoards() {
  return boardList((await ask("GET", "/api/boards")).boards);
}

function boardList(boards) {
  return element(
    "ul",
    { class: "boards" },
    boards.map((board) =>
      element(
        "li",
        { class: "board" },
        element("a", { href: `#/boards/${board.id}`, "aria-hidden": "true", tabindex: -1 }, art(board.id)),
        element(
          "div",
          { class: "words" },
          element("h3", {}, element("a", { href: `#/boards/${board.id}` }, board.name)),
          element("p", { class: "soft" }, board.description),
        ),
      ),
    ),
  );
}

// A picture that is always the same for an ID: two hues and three circles.
function art(id) {
  let state = Number(BigInt(id) % 2147483647n);
  const next = (most) => (state = (state * 48271) % 2147483647) % most;
  next(1);
  const hue = next(360);
  const circles = [0, 1, 2].map(() =>
    element("svg:circle", { cx: next(160), cy: next(120), r: 14 + next(38), fill: `hsl(${hue + next(70)} 70% 62%)`, opacity: 0.75 }),
  );
  const back = element("svg:rect", { width: 160, height: 120, fill: `hsl(${hue} 55% 45%)` });
  return element("svg:svg", { class: "art", viewBox: "0 0 160 120", preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" }, back, circles);
}

// --- reordering ---------------------------------------------------------------------------------------

// Where a pin is put between its neighbours is told to the server. If it says that others have moved pins
// meanwhile, the order of now is shown.
function mover(list, rows, path) {
  async function save(pin) {
    // what is behind the last pin that is shown?
    if (!pin.nextElementSibling && !rows.whole()) await rows.more();
    const { id } = pin.dataset;
    const neighbour = (item) => item?.dataset.id ?? null;
    const [before, after] = [neighbour(pin.previousElementSibling), neighbour(pin.nextElementSibling)];
    try {
      const { note } = await ask("POST", `${path}/order`, { pin: id, before, after });
      place.textContent = `Now in place ${[...list.children].indexOf(pin) + 1}`;
      if (note) {
        say(note);
        await rows.again();
      }
    } catch (error) {
      say(error.message);
      await rows.again();
    }
  }

  async function step(pin, by) {
    if (by > 0 && !pin.nextElementSibling) await rows.more();
    const neighbour = by > 0 ? pin.nextElementSibling : pin.previousElementSibling;
    if (!neighbour) return;
    const button = document.activeElement;
    by > 0 ? neighbour.after(pin) : neighbour.before(pin);
    button.focus();
    await save(pin);
  }

  return { save, step };
}

// While a pin is dragged it stands where it would be dropped.
function makeDraggable(list, save) {
  let dragged = null;
  let home = null; // what it stood before
  let dropped = false;

  list.addEventListener("dragstart", (event) => {
    dragged = event.target.closest(".pin");
    home = dragged.nextElementSibling;
    dropped = false;
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.dataset.id);
    // the browser first takes its picture of the pin
    requestAnimationFrame(() => dragged?.classList.add("dragged"));
  });
  list.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault();
    const over = event.target.closest(".pin");
    if (!over || over === dragged) return;
    const { left, width } = over.getBoundingClientRect();
    event.clientX < left + width / 2 ? over.before(dragged) : over.after(dragged);
  });
  list.addEventListener("drop", (event) => {
    event.preventDefault();
    dropped = true;
  });
  list.addEventListener("dragend", () => {
    const [pin, was] = [dragged, home];
    dragged = null;
    pin.classList.remove("dragged");
    if (!dropped) list.insertBefore(pin, was);
    else if (pin.nextElementSibling !== was) save(pin);
  });
}
