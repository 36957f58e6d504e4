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
  const response = await fetch(path, method === "GET" ? {} : json);
  const answer = await response.json();
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
    say(error.message);
  }
};

// A form of one-line inputs [name, placeholder, attributes]; `done` gets what was typed.
export function form(button, inputs, done) {
  return element(
    "form",
    {
      submit: tell(async (event) => {
        event.preventDefault();
        const { target } = event;
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
  const click = tell(async () => {
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
  const click = tell(async () => {
    on = (await ask(on ? "DELETE" : "PUT", path)).following;
    show();
  });
  const button = element("button", { click });
  show();
  return button;
}

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

  // As many as there were, as they are now
  async function again() {
    const wanted = list.children.length;
    await reading;
    list.replaceChildren();
    cursor = null;
    do await more();
    while (cursor && list.children.length < wanted);
  }

  return { button, more, again, whole: () => !cursor };
}

// Shows the view that the address names. `views`: [pattern, function of the match and the user that gives elements].
export async function start(views) {
  const { user, known } = await ask("GET", "/api/session");
  if (!user) return main.replaceChildren(signIn(known));
  const leave = tell(async () => {
    await ask("DELETE", "/api/session");
    location.reload();
  });
  document
    .querySelector(".me")
    .replaceChildren(element("span", {}, user.name), element("button", { class: "bare soft", click: leave }, "Sign out"));
  const mine = document.querySelector("#mine");
  mine.href = `#/users/${user.id}`;
  mine.closest("nav").hidden = false;

  const show = tell(async () => {
    const address = location.hash || "#/";
    for (const link of document.querySelectorAll(".top nav a"))
      link.toggleAttribute("aria-current", link.getAttribute("href") === address);
    for (const [pattern, view] of views) {
      const match = address.match(pattern);
      if (!match) continue;
      const made = await view(match, user);
      // another one may have been asked for meanwhile
      if (address === (location.hash || "#/")) main.replaceChildren(...made.filter(Boolean));
      return;
    }
    main.replaceChildren(element("p", { class: "empty" }, "There is no such page."));
  });
  addEventListener("hashchange", () => {
    scrollTo(0, 0);
    show();
  });
  await show();
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
      known.map((name) => element("button", { click: tell(() => become(name)) }, name)),
    ),
  );
}
