// The live parts of the status page: charts of the last ten minutes, the heat of the shard map, columns to sort
// by. It asks live.json every two seconds, and the page itself every ten; nothing else is loaded.
"use strict";
(() => {
  const PERIOD = 2000, PAGE_PERIOD = 10000, SPAN = 600;
  const SVG = "http://www.w3.org/2000/svg";
  const points = [];
  let state = null, paused = false, failures = 0, after = 0, hover = null;

  // -- words
  const thin = "\u202f";
  const number = value => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, thin);
  const rate = value => value >= 100 ? number(value) : value >= 10 ? value.toFixed(0) : value > 0 ? value.toPrecision(2) : "0";
  const time = seconds => seconds <= 0 ? "–" : seconds < 0.001 ? (seconds * 1e6).toFixed(0) + " µs"
    : seconds < 1 ? Number((seconds * 1e3).toPrecision(3)) + " ms" : Number(seconds.toPrecision(3)) + " s";
  const clock = at => new Date(at * 1000).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit", second: "2-digit"});
  const element = (name, attributes = {}, text = "") => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const drawn = (name, attributes = {}) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const hue = host => {
    const found = document.querySelector(`[data-host="${CSS.escape(host)}"]`);
    return found ? found.style.getPropertyValue("--h") : "250";
  };

  // -- charts
  const hosts = () => Object.keys(points.length ? points[points.length - 1].hosts : {}).slice(0, 12);
  const ofHosts = (pick, show) => () => hosts().map(host => ({
    name: host, hue: hue(host), show, value: point => point.hosts[host] ? pick(point.hosts[host]) : null,
  }));
  const CHARTS = [
    {title: "Statements a second", show: rate, area: true,
      series: () => [{name: "all", kind: "main", value: point => point.statements}]},
    {title: "Answered within", show: time, series: () => [
      {name: "p50", kind: "main", value: point => point.p50},
      {name: "p95", kind: "second", value: point => point.p95},
      {name: "p99", kind: "third", value: point => point.p99}]},
    {title: "Errors a second", show: rate, area: true,
      series: () => [{name: "all", kind: "bad", value: point => point.errors}]},
    {title: "Statements a second, by host", show: rate, series: ofHosts(one => one.statements)},
    {title: "Mean time on a host", show: time, series: ofHosts(one => one.statements ? one.mean : null)},
    {title: "Connections at work, by host", show: number, series: ofHosts(one => one.busy)},
  ];
  const WIDTH = 300, HEIGHT = 84;

  const nice = value => {
    if (value <= 0) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 3, 5, 10].map(step => step * power).find(top => top >= value * 0.999);
  };

  const build = root => {
    for (const chart of CHARTS) {
      const figure = element("figure", {class: "chart"});
      const caption = element("figcaption");
      caption.append(element("b", {}, chart.title), chart.legend = element("span", {class: "values"}));
      const svg = chart.svg = drawn("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
        role: "img", "aria-label": chart.title});
      const axis = element("div", {class: "axis"});
      axis.append(element("span", {}, "10 min ago"), chart.at = element("span"), element("span", {}, "now"));
      const plot = element("div", {class: "plot"});
      plot.append(svg, chart.top = element("span", {class: "top"}));
      figure.append(caption, plot, axis);
      svg.addEventListener("pointermove", event => {
        const box = svg.getBoundingClientRect();
        hover = (event.clientX - box.left) / box.width;
        draw();
      });
      svg.addEventListener("pointerleave", () => { hover = null; draw(); });
      root.append(figure);
    }
    root.hidden = false;
  };

  const draw = () => {
    if (!points.length) return;
    const end = points[points.length - 1].at, x = at => WIDTH * (1 - (end - at) / SPAN);
    const shown = hover === null ? points[points.length - 1]
      : points.reduce((best, one) => Math.abs(x(one.at) - hover * WIDTH) < Math.abs(x(best.at) - hover * WIDTH) ? one : best);
    for (const chart of CHARTS) {
      const series = chart.series();
      const highest = Math.max(0, ...series.flatMap(one => points.map(point => one.value(point) ?? 0)));
      const top = nice(highest), y = value => HEIGHT - 1 - (HEIGHT - 6) * value / top;
      chart.top.textContent = highest > 0 ? chart.show(top) : "";
      const parts = [drawn("path", {class: "grid", d: `M0 ${y(top / 2)}H${WIDTH}M0 ${y(top)}H${WIDTH}M0 ${HEIGHT - 1}H${WIDTH}`})];
      for (const one of series) {
        let path = "", last = null;
        for (const point of points) {
          const value = one.value(point);
          if (value === null) { last = null; continue; }
          const gap = last === null || point.at - last > 3 * state.step;
          path += `${gap ? "M" : "L"}${x(point.at).toFixed(1)} ${y(value).toFixed(1)}`;
          last = point.at;
        }
        const look = one.hue === undefined ? {class: `line ${one.kind}`} : {class: "line host", style: `--h:${one.hue}`};
        if (chart.area && path && !path.includes("M", 1)) {
          parts.push(drawn("path", {class: `area ${one.kind}`,
            d: `${path}L${x(last).toFixed(1)} ${HEIGHT - 1}L${x(points[0].at).toFixed(1)} ${HEIGHT - 1}Z`}));
        }
        parts.push(drawn("path", {...look, d: path}));
      }
      if (hover !== null) parts.push(drawn("path", {class: "cross", d: `M${x(shown.at).toFixed(1)} 0V${HEIGHT}`}));
      chart.svg.replaceChildren(...parts);
      chart.at.textContent = hover === null ? "" : clock(shown.at);
      chart.legend.replaceChildren(...series.map(one => {
        const item = element("span"), value = one.value(shown);
        const mark = element("i", {class: `swatch line ${one.kind ?? ""}`});
        if (one.hue !== undefined) mark.style.setProperty("--h", one.hue);
        item.append(mark, series.length > 1 ? `${one.name} ` : "", element("b", {}, value === null ? "–" : chart.show(value)));
        return item;
      }));
    }
  };

  // -- the map
  const CODES = ["", "slow", "failing"];
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const heat = () => {
    for (const one of state.map) {
      const holder = document.querySelector(`[data-heat="${CSS.escape(one.name)}"]`);
      if (!holder || !one.count) continue;
      let canvas = holder.querySelector("canvas");
      if (!canvas) {
        canvas = element("canvas", {role: "img"});
        holder.append(canvas);
        canvas.addEventListener("pointermove", event => tell(holder, canvas, event));
        canvas.addEventListener("pointerdown", event => tell(holder, canvas, event));
        canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
      }
      const cells = Math.ceil(one.count / one.size), width = holder.clientWidth;
      // a power of two in a row: ranges of shards begin and end where rows do, and one row is as wide as the bar
      const least = cells > 1024 ? 5 : 8;
      const columns = Math.min(2 ** Math.ceil(Math.log2(cells)), 2 ** Math.floor(Math.log2(width / least)));
      const rows = Math.ceil(cells / columns), wide = width / columns, high = rows > 1 ? Math.min(Math.max(wide, 7), 16) : 20;
      const scale = window.devicePixelRatio || 1, gap = wide > 7 ? 2 : 1;
      canvas.geometry = {one, columns, wide, high};
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(rows * high * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${rows * high}px`;
      const context = canvas.getContext("2d");
      context.scale(scale, scale);
      const hottest = Math.max(1e-9, ...one.cells.map(cell => cell[2]));
      const [track, cold, bad, slow, ring] = ["--track", "--accent", "--bad-fill", "--slow-fill", "--ink"].map(colour);
      const known = new Map(one.cells.map(cell => [cell[0], cell]));
      for (let index = 0; index < cells; index += 1) {
        const left = index % columns * wide, above = Math.floor(index / columns) * high;
        const cell = known.get(index), code = cell ? CODES[cell[1]] : "";
        context.globalAlpha = 1;
        context.fillStyle = track;
        context.fillRect(left, above, wide - gap, high - gap);
        if (!cell) continue;
        context.fillStyle = code === "failing" ? bad : code === "slow" ? slow : cold;
        if (!code) context.globalAlpha = 0.18 + 0.82 * Math.sqrt(cell[2] / hottest);
        context.fillRect(left, above, wide - gap, high - gap);
        if (code && wide > 7) {
          context.globalAlpha = 1;
          context.strokeStyle = ring;
          context.lineWidth = 1.5;
          context.strokeRect(left + 0.75, above + 0.75, wide - gap - 1.5, high - gap - 1.5);
        }
      }
      const wrong = one.cells.filter(cell => cell[1]).length;
      canvas.setAttribute("aria-label", `${one.name}: ${one.cells.length} of ${cells} had work` + (wrong ? `, ${wrong} slow or failing` : ""));
    }
  };

  const tip = element("div", {class: "tip", role: "status"});
  tip.hidden = true;
  const tell = (holder, canvas, event) => {
    const {one, columns, wide, high} = canvas.geometry, box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / wide), row = Math.floor((event.clientY - box.top) / high);
    const index = row * columns + column, first = one.first + index * one.size;
    if (column < 0 || column >= columns || index < 0 || first >= one.first + one.count) { tip.hidden = true; return; }
    const last = Math.min(first + one.size, one.first + one.count) - 1;
    const cell = one.cells.find(known => known[0] === index);
    tip.replaceChildren(element("b", {}, `${one.name} ${first}${last > first ? `–${last}` : ""}${cell && cell[1] ? ` · ${CODES[cell[1]]}` : ""}`),
      element("span", {}, cell ? `${rate(cell[3])} a second, mean ${time(cell[4])}, p95 ${time(cell[5])}, ${number(cell[6])} errors, ${number(cell[7])} running` : "nothing in the last seconds"));
    tip.hidden = false;
    const width = Math.min(300, window.innerWidth - 16);
    tip.style.width = `${width}px`;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, window.innerWidth - width - 8)) + window.scrollX}px`;
    tip.style.top = `${event.clientY + 16 + window.scrollY}px`;
  };

  const hot = () => {
    const body = document.querySelector("#hot tbody");
    if (!body) return;
    body.replaceChildren(...state.hot.slice(0, 10).map(one => {
      const row = element("tr"), pill = one.state ? element("span", {class: `pill ${one.state === "failing" ? "bad" : "wait"}`}, one.state) : element("span", {class: "pill"}, "well");
      const cells = [`${one.keyspace} ${one.shard}`, one.host, pill, rate(one.per_second), time(one.mean), time(one.p95), number(one.errors), number(one.running), time(one.oldest)];
      row.append(...cells.map((value, index) => {
        const cell = element("td", index > 2 ? {class: "n"} : {});
        cell.append(value);
        return cell;
      }));
      return row;
    }));
    document.querySelector("#hot").hidden = !state.hot.length;
  };

  // -- tables
  const sorted = {};
  const order = table => {
    const by = sorted[table.id];
    if (!by) return;
    const body = table.tBodies[0], value = row => {
      const cell = row.cells[by.column], given = cell.dataset.value;
      return given === undefined ? cell.textContent.trim().toLowerCase() : Number(given);
    };
    [...body.rows].sort((one, other) => {
      const a = value(one), b = value(other);
      return (a < b ? -1 : a > b ? 1 : 0) * (by.down ? -1 : 1);
    }).forEach(row => body.append(row));
    [...table.tHead.rows[0].cells].forEach((cell, index) => {
      if (index === by.column) cell.setAttribute("aria-sort", by.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
  };
  const sortable = () => {
    for (const table of document.querySelectorAll("table.sortable")) {
      [...table.tHead.rows[0].cells].forEach((cell, column) => {
        const button = element("button", {type: "button"}, cell.textContent);
        button.addEventListener("click", () => {
          const before = sorted[table.id];
          sorted[table.id] = {column, down: before && before.column === column ? !before.down : cell.classList.contains("n")};
          order(table);
        });
        cell.replaceChildren(button);
      });
      order(table);
    }
  };

  // -- news
  const ask = async () => {
    const answer = await fetch(`live.json?after=${after}`, {cache: "no-store"});
    if (!answer.ok) throw new Error(String(answer.status));
    state = await answer.json();
    points.push(...state.points);
    if (points.length) after = points[points.length - 1].at;
    while (points.length && points[0].at < after - SPAN) points.shift();
    draw();
    heat();
    hot();
  };
  const askPage = async () => {
    const answer = await fetch(location.pathname, {cache: "no-store"});
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = fresh.title;
    for (const part of document.querySelectorAll("[data-fresh]")) {
      const other = fresh.getElementById(part.id);
      if (other) part.replaceChildren(...other.childNodes);
    }
    sortable();
    if (state) { heat(); hot(); }
  };
  const pulse = document.querySelector("#live");
  const say = text => { pulse.textContent = text; pulse.classList.toggle("off", text !== "live"); };
  const turn = async (what, period) => {
    for (;;) {
      if (!paused && !document.hidden) {
        try {
          await what();
          failures = 0;
          say("live");
        } catch (error) {
          failures += 1;
          say("no answer");
        }
      }
      await new Promise(done => setTimeout(done, period * Math.min(1 + failures, 5)));
    }
  };
  pulse.hidden = false;
  pulse.addEventListener("click", () => { paused = !paused; say(paused ? "paused" : "live"); });
  document.body.append(tip);
  build(document.querySelector("#charts"));
  sortable();
  window.addEventListener("resize", () => { if (state) heat(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (state) heat(); });
  turn(ask, PERIOD);
  setTimeout(() => turn(askPage, PAGE_PERIOD), PAGE_PERIOD);
})();
