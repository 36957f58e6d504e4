import { ask, element, form, heart, pages, start, toggle } from "/common/common.js";

start([
  [/^#\/$/, feed],
  [/^#\/discover$/, discover],
  [/^#\/users\/(\d+)$/, userPage],
  [/^#\/photos\/(\d+)$/, photoPage],
  [/^#\/ids$/, lookUp],
]);

// --- views ------------------------------------------------------------------------------------------

async function feed() {
  const list = element("ol", { class: "feed" });
  const rows = pages(list, (cursor) => readPhotos("/api/feed", cursor), card);
  await rows.first();
  const none = element("p", { class: "empty" }, "Take one, or follow somebody whose photos you ", element("a", { href: "#/discover" }, "discover"), ".");
  const take = form("Take a photo", [["caption", "What is to be seen?", { required: true, maxlength: 255 }]], async (fields) => {
    list.prepend(card(await ask("POST", "/api/photos", fields)));
  });
  return [element("div", { class: "column" }, element("section", { class: "panel" }, take), list, none, rows.button)];
}

async function discover() {
  const list = element("ol", { class: "grid" });
  const rows = pages(list, (cursor) => readPhotos("/api/photos", cursor), square);
  await rows.first();
  return [element("h1", {}, "The newest photos"), list, rows.button];
}

async function userPage([, id], me) {
  const path = `/api/users/${id}`;
  const { user, photos, followers, follows, following } = await ask("GET", path);
  const list = element("ol", { class: "grid" });
  const rows = pages(list, (cursor) => readPhotos(`${path}/photos`, cursor), square);
  await rows.first();
  return [
    element(
      "div",
      { class: "row" },
      element("div", {}, element("h1", {}, user.name), element("p", { class: "soft" }, user.about)),
      element("div", { class: "end" }, id !== me.id && toggle(following, `${path}/follow`, { off: "Follow", on: "Following" })),
    ),
    element(
      "p",
      { class: "numbers soft" },
      [["Photos", photos], ["Followers", followers], ["Following", follows]].map(([of, number]) => element("span", {}, `${of} `, element("b", {}, String(number)))),
    ),
    photos ? list : element("p", { class: "empty" }, "No photos yet."),
    rows.button,
  ];
}

async function photoPage([, id]) {
  const { photo, parts } = await ask("GET", `/api/photos/${id}`);
  return [
    element(
      "div",
      { class: "column" },
      photo ? element("div", {}, card(photo)) : element("p", { class: "empty" }, "No photo has this ID. If one had:"),
      explanation(id, parts),
      lookUpForm(),
    ),
  ];
}

async function lookUp() {
  return [
    element(
      "div",
      { class: "column" },
      element("h1", {}, "A photo by its ID"),
      element("p", { class: "soft" }, "The ID alone says on which shard the photo is, and when it was made. Try one from the feed."),
      lookUpForm(),
    ),
  ];
}

// --- pieces -----------------------------------------------------------------------------------------

async function readPhotos(path, cursor) {
  const answer = await ask("GET", cursor ? `${path}?cursor=${cursor}` : path);
  return { items: answer.photos, cursor: answer.cursor };
}

function card(photo) {
  const { id, caption, user, parts } = photo;
  return element(
    "li",
    { class: "photo" },
    element("a", { href: `#/photos/${id}`, "aria-label": caption }, art(photo)),
    element(
      "div",
      { class: "words" },
      element(
        "div",
        { class: "row" },
        user && element("a", { href: `#/users/${user.id}` }, user.name),
        element("span", { class: "end" }, heart(photo, `/api/photos/${id}/like`)),
      ),
      element("p", {}, caption),
      strip(parts),
    ),
  );
}

function square(photo) {
  return element("li", {}, element("a", { href: `#/photos/${photo.id}`, "aria-label": photo.caption }, art(photo)));
}

const clock = ({ time }) => time.slice(0, 23).replace("T", " ");

// What the parts of an ID say.
function strip(parts) {
  const part = (name, value) => element("span", { class: name }, element("b", {}, name), String(value));
  return element("div", { class: "id" }, part("time", clock(parts)), part("shard", parts.shard), part("sequence", parts.sequence));
}

// The same bit by bit.
function explanation(id, parts) {
  const bits = BigInt(id).toString(2).padStart(64, "0");
  const run = (name, from, to) => element("span", { class: name, title: name }, bits.slice(from, to));
  return element(
    "section",
    { class: "panel" },
    element("h2", {}, "What its ID says"),
    element("p", { class: "number" }, id),
    element("p", { class: "bits" }, run("time", 0, 41), " ", run("shard", 41, 54), " ", run("sequence", 54, 64)),
    strip(parts),
    element(
      "p",
      { class: "soft" },
      "41 bits of milliseconds since 2011-08-24, 13 of shard, 10 of the shard’s own sequence: IDs sort by time, and each says by itself where its photo is. The picture is drawn from it: the time makes the light, the shard the colour, the sequence the hills.",
    ),
  );
}

function lookUpForm() {
  const go = ({ id }) => (location.hash = `#/photos/${id}`);
  return form("Look up", [["id", "ID of a photo", { required: true, pattern: "[0-9]{1,19}", inputmode: "numeric" }]], go);
}

const SKIES = [
  [5, "#0d1233", "#33406f"], // until this hour, above, below
  [8, "#4a4a8a", "#f6b08d"],
  [17, "#4b93d8", "#d3eaf7"],
  [20, "#472d63", "#f4815f"],
  [24, "#0d1233", "#33406f"],
];

// The picture, from the ID: its hour is the sky, its shard the colour of the hills, its sequence their shape.
function art({ id, parts }) {
  const hour = Number(parts.time.slice(11, 13)) + Number(parts.time.slice(14, 16)) / 60;
  const [, above, below] = SKIES.find(([until]) => hour < until);
  const night = above === SKIES[0][1];
  const along = night ? ((hour + 4) % 24) / 9 : (hour - 5) / 15;
  const sky = `sky-${id}`;
  const hill = (depth) => {
    const wave = (x) => 62 + depth * 17 + 11 * Math.sin(x / (17 + depth * 7) + parts.sequence * (1.3 + depth));
    const line = Array.from({ length: 33 }, (_, step) => `L${step * 5} ${wave(step * 5).toFixed(1)}`).join("");
    const fill = `hsl(${(parts.shard * 47) % 360} ${night ? 22 : 38}% ${(night ? 26 : 58) - depth * (night ? 7 : 13)}%)`;
    return element("svg:path", { d: `M0 120${line}L160 120Z`, fill });
  };
  return element(
    "svg:svg",
    { class: "art", viewBox: "0 0 160 120", preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" },
    element(
      "svg:linearGradient",
      { id: sky, x2: 0, y2: 1 },
      element("svg:stop", { "stop-color": above }),
      element("svg:stop", { offset: 0.75, "stop-color": below }),
    ),
    element("svg:rect", { width: 160, height: 120, fill: `url(#${sky})` }),
    element("svg:circle", {
      cx: 12 + 136 * along,
      cy: 58 - 42 * Math.sin(Math.PI * along),
      r: night ? 7 : 10,
      fill: night ? "#f4f1de" : "#ffe8a3",
    }),
    [0, 1, 2].map(hill),
  );
}
