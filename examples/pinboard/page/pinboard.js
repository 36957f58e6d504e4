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
  await rows.first();
  if (list.children.length) return [element("h1", {}, "New on the boards you follow"), list, rows.button];
  return [
    element("h1", {}, "Your feed is empty"),
    element("p", { class: "soft" }, "Follow boards, and their newest pins are here. These are the newest boards:"),
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
  const list = element("ol", { class: mine ? "pins mine" : "pins" });
  const number = (pins) => (pins === 1 ? "1 pin" : `${pins} pins`);
  const count = element("span", {}, number(pins));
  let added = 0;
  const rows = pages(list, (cursor) => readPins(`${path}/pins`, cursor), (pin) => card(pin, { moves: mine && moves }));
  const move = mover(list, rows, path);
  const moves = { earlier: (pin) => move.step(pin, -1), later: (pin) => move.step(pin, 1) };
  const showWhole = () => list.classList.toggle("whole", rows.whole());
  new MutationObserver(showWhole).observe(list, { childList: true });
  if (mine) makeDraggable(list, move.save);
  await rows.first();

  const add = form("Add pin", [["details", "What it is", { required: true, maxlength: 200 }], ["link", "https://… (if it has a link)", { type: "url", maxlength: 500 }]], async (fields) => {
    await ask("POST", `${path}/pins`, fields);
    count.textContent = number(pins + ++added);
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
        element("p", { class: "soft" }, count, " by ", user ? element("a", { href: `#/users/${user.id}` }, user.name) : "nobody", " ", shard(board)),
      ),
      element("div", { class: "end" }, mine ? null : toggle(following, `${path}/follow`, { off: "Follow", on: "Following" })),
    ),
    mine && element("section", { class: "panel" }, add, element("p", { class: "soft" }, "Drag a pin to another place, or use its arrows.")),
    list,
    element("p", { class: "empty" }, "No pins yet."),
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
    { class: "pin", "data-id": pin.id },
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
        element("span", { class: "grip", "aria-hidden": "true" }, icon("M9 6v0m6 0v0M9 12v0m6 0v0M9 18v0m6 0v0")),
        arrow("later", "M9 5l7 7-7 7", pin, () => moves.later(item)),
      ),
    );
  return item;
}

function arrow(name, d, pin, click) {
  const attributes = { class: name, "aria-label": `Move ${pin.details} ${name}`, click: tell(click) };
  return element("button", attributes, icon(d));
}

function icon(d) {
  const path = element("svg:path", { d, fill: "none", stroke: "currentColor", "stroke-width": 2.5, "stroke-linecap": "round" });
  return element("svg:svg", { viewBox: "0 0 24 24", width: 20, height: 20 }, path);
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
  let sent = Promise.resolve();

  // Moves are sent one after another: each counts on those before it
  async function save(pin) {
    // what is behind the last pin that is shown?
    if (!pin.nextElementSibling && !rows.whole()) await rows.more();
    const id = (item) => item?.dataset.id ?? null;
    const move = { pin: id(pin), before: id(pin.previousElementSibling), after: id(pin.nextElementSibling) };
    const number = [...list.children].indexOf(pin) + 1;
    await (sent = sent.then(() => send(move, number)));
  }

  async function send(move, number) {
    try {
      const { note } = await ask("POST", `${path}/order`, move);
      if (!note) return (place.textContent = `Now in place ${number}`); // who does not see it hears it
      say(note);
    } catch (error) {
      say(error.message);
    }
    await rows.again().catch((error) => say(error.message));
  }

  async function step(pin, by) {
    if (by > 0 && !pin.nextElementSibling) await rows.more();
    const neighbour = by > 0 ? pin.nextElementSibling : pin.previousElementSibling;
    if (!neighbour) return;
    const button = document.activeElement;
    by > 0 ? neighbour.after(pin) : neighbour.before(pin);
    // at an end one of the two arrows is gone
    for (const one of [button, ...pin.querySelectorAll(".moves button")]) {
      one.focus();
      if (document.activeElement === one) break;
    }
    await save(pin);
  }

  return { save, step };
}

// A mouse drags a pin wherever it holds it, a finger by its grip: elsewhere fingers scroll. While it is dragged a copy
// follows the pointer, and the pin itself stands where it would be dropped. Escape puts it back.
function makeDraggable(list, save) {
  let pin = null; // that is held
  let from, at; // events: where it was taken, and where the pointer is
  let copy = null; // while it is dragged
  let home; // what it stood before

  function lift() {
    home = pin.nextElementSibling;
    const { left, top, width } = pin.getBoundingClientRect();
    copy = pin.cloneNode(true);
    copy.classList.add("copy");
    Object.assign(copy.style, { left: `${left}px`, top: `${top}px`, width: `${width}px` });
    list.parentElement.append(copy);
    pin.classList.add("dragged");
    list.setPointerCapture(from.pointerId);
    addEventListener("keydown", escape);
    requestAnimationFrame(scroll);
  }

  function follow() {
    copy.style.translate = `${at.clientX - from.clientX}px ${at.clientY - from.clientY}px`;
    const over = document.elementFromPoint(at.clientX, at.clientY)?.closest(".pin");
    if (!over || over === pin || over.parentElement !== list || !pin.isConnected) return;
    const { left, width } = over.getBoundingClientRect();
    at.clientX < left + width / 2 ? over.before(pin) : over.after(pin);
  }

  // At the window's upper and lower end
  function scroll() {
    if (!copy?.isConnected) return;
    const by = at.clientY < 90 ? -9 : at.clientY > innerHeight - 60 ? 9 : 0;
    if (by) {
      scrollBy(0, by);
      follow();
    }
    requestAnimationFrame(scroll);
  }

  function end(dropped) {
    if (copy) {
      copy.remove();
      pin.classList.remove("dragged");
      removeEventListener("keydown", escape);
      // the list may have been read anew meanwhile
      if (!dropped && pin.isConnected) list.insertBefore(pin, home);
      if (dropped && pin.isConnected && pin.nextElementSibling !== home) tell(save)(pin);
    }
    pin = copy = null;
  }

  function escape({ key }) {
    if (key === "Escape") end(false);
  }

  list.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest(".grip");
    if (pin || event.button !== 0 || event.target.closest("a, button")) return;
    if (event.pointerType !== "mouse" && !grip) return;
    pin = event.target.closest(".pin");
    from = event;
  });
  list.addEventListener("pointermove", (event) => {
    if (!pin || event.pointerId !== from.pointerId) return;
    at = event;
    if (!copy && Math.hypot(at.clientX - from.clientX, at.clientY - from.clientY) > 5) lift();
    if (copy) follow();
  });
  for (const [kind, dropped] of [["pointerup", true], ["pointercancel", false], ["pointerleave", false]])
    list.addEventListener(kind, (event) => event.pointerId === from?.pointerId && end(dropped));
}
