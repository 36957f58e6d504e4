// What both pages share: elements, requests, the view that the address names, signing in.

const main = document.querySelector("main");
const toast = document.querySelector("#toast");
let toastTimer;

// An element, or with "svg:" an SVG one. Texts become text nodes: nothing that users write is read as HTML.
export function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child != null && child !== false));
  return made;
}

// What the server answers; an Error with its text and `status` when it refuses.
export async function ask(method, path, body) {
  const json = { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body ?? {}) };
  const response = await fetch(path, method === "GET" ? {} : json).catch(() => null);
  if (!response) throw new Error("The server cannot be reached. Try again in a moment.");
  const answer = await response.json().catch(() => ({ error: "Something went wrong." }));
  if (!response.ok) throw Object.assign(new Error(answer.error), { status: response.status });
  return answer;
}

export function say(text) {
  toast.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => toast.replaceChildren(), 6000);
}

// A handler of events whose errors are told.
export const tell = (work) => async (event) => {
  try {
    await work(event);
  } catch (error) {
    if (error.status === 401) location.reload(); // nobody is signed in any more
    else say(error.message);
  }
};

// The same, while which no other click does anything: who clicks twice makes one board.
export function once(work) {
  let busy = false;
  return tell(async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    try {
      await work(event);
    } finally {
      busy = false;
    }
  });
}

// A form of one-line inputs [name, placeholder, attributes]; `done` gets what was typed.
export function form(button, inputs, done) {
  return element(
    "form",
    {
      submit: once(async ({ target }) => {
        await done(Object.fromEntries(new FormData(target)));
        target.reset();
      }),
    },
    inputs.map(([name, placeholder, attributes]) =>
      element("input", { name, placeholder, "aria-label": placeholder, ...attributes }),
    ),
    element("button", { class: "strong" }, button),
  );
}

// A heart that shows `likes` and whether oneself is one of them, kept at `path`.
export function heart({ liked, likes }, path) {
  const count = element("span", {}, String(likes));
  const shape = "M12 20.5 4.2 12.7a5 5 0 0 1 7.1-7.1l.7.7.7-.7a5 5 0 0 1 7.1 7.1z";
  const click = once(async () => {
    const answer = await ask(pressed() ? "DELETE" : "PUT", path);
    button.setAttribute("aria-pressed", answer.liked);
    count.textContent = answer.likes;
  });
  const button = element(
    "button",
    { class: "bare heart", "aria-label": "Like", "aria-pressed": String(liked), click },
    element("svg:svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, element("svg:path", { d: shape })),
    count,
  );
  const pressed = () => button.getAttribute("aria-pressed") === "true";
  return button;
}

// A button that is on or off, e.g. Follow: `path` is put, or deleted.
export function toggle(on, path, { off: offText, on: onText }) {
  const show = () => {
    button.textContent = on ? onText : offText;
    button.className = on ? "" : "strong";
  };
  const click = once(async () => {
    on = (await ask(on ? "DELETE" : "PUT", path)).following;
    show();
  });
  const button = element("button", { click });
  show();
  return button;
}

// Where one was on the pages that Back leads to, by their entries in the history: how far down, and how many items
// of a list were there.
const left = new Map();
let entry = null;
let expected = 0;

// A list that grows by pages: `read(cursor)` gives {items, cursor}, `show(item)` an element.
export function pages(list, read, show) {
  let cursor = null;
  const button = element("button", { class: "more", click: tell(() => more()) }, "More");
  const seen = new IntersectionObserver(([entry]) => entry.isIntersecting && button.click());
  let reading = null;

  async function readOne() {
    const page = await read(cursor);
    list.append(...page.items.map(show));
    cursor = page.cursor;
    button.hidden = !cursor;
    // observed anew, since a button that stays in sight says nothing
    seen.unobserve(button);
    if (cursor) seen.observe(button);
  }

  async function more() {
    reading ??= readOne().finally(() => (reading = null));
    await reading;
  }

  async function first(wanted = expected) {
    do await more();
    while (cursor && list.children.length < wanted);
  }

  // As many as there were, as they are now; one time after another
  let renewed = Promise.resolve();
  const again = () => (renewed = renewed.catch(() => {}).then(anew));

  async function anew() {
    const wanted = list.children.length;
    await reading;
    list.replaceChildren();
    cursor = null;
    await first(wanted);
  }

  return { button, first, more, again, whole: () => !cursor };
}

// Shows the view that the address names. `views`: [pattern, function of the match and the user that gives elements].
export async function start(views) {
  let session;
  try {
    session = await ask("GET", "/api/session");
  } catch (error) {
    return main.replaceChildren(trouble(error, () => location.reload()));
  }
  const { user, known } = session;
  if (!user) return main.replaceChildren(signIn(known));
  const leave = once(async () => {
    await ask("DELETE", "/api/session");
    location.reload();
  });
  document
    .querySelector(".me")
    .replaceChildren(element("span", {}, user.name), element("button", { class: "bare soft", click: leave }, "Sign out"));
  const mine = document.querySelector("#mine");
  mine.href = `#/users/${user.id}`;
  mine.closest("nav").hidden = false;
  const brand = document.title;

  async function made(address) {
    for (const [pattern, view] of views) {
      const match = address.match(pattern);
      if (match) return await view(match, user);
    }
    throw Object.assign(new Error("There is no such page."), { status: 404 });
  }

  const show = tell(async () => {
    const address = location.hash || "#/";
    left.set(entry, { top: scrollY, items: main.querySelectorAll("ol > li").length });
    const now = (entry = history.state ?? Date.now());
    history.replaceState(now, "");
    const { top, items } = left.get(now) ?? { top: 0, items: 0 };
    expected = items;
    const elements = await made(address).catch((error) => {
      if (error.status === 401) throw error;
      return [trouble(error, show)];
    });
    if (entry !== now || address !== (location.hash || "#/")) return; // another one has been asked for meanwhile
    for (const link of document.querySelectorAll(".top nav a"))
      link.getAttribute("href") === address ? link.setAttribute("aria-current", "page") : link.removeAttribute("aria-current");
    main.replaceChildren(...elements.filter(Boolean));
    document.title = [main.querySelector("h1")?.textContent, brand].filter(Boolean).join(" · ");
    scrollTo(0, top);
  });
  history.scrollRestoration = "manual";
  addEventListener("hashchange", show);
  await show();
}

// What is shown instead of a view that cannot be.
function trouble({ message, status }, again) {
  const way = status === 404 ? element("a", { href: "#/" }, "To the feed") : element("button", { click: again }, "Try again");
  return element("div", { class: "empty" }, element("p", {}, message), way);
}

function signIn(known) {
  const become = async (username) => {
    await ask("POST", "/api/session", { username });
    location.reload();
  };
  return element(
    "section",
    { class: "panel narrow" },
    element("h1", {}, "Who are you?"),
    element("p", { class: "soft" }, "Any name will do: a new one makes a new user. There are no passwords in this example."),
    form("Go", [["username", "Name", { required: true, maxlength: 30, autocomplete: "username" }]], ({ username }) =>
      become(username),
    ),
    known.length > 0 && element("p", { class: "soft" }, "Or be one of these:"),
    element(
      "div",
      { class: "chips" },
      known.map((name) => element("button", { click: once(() => become(name)) }, name)),
    ),
  );
}
