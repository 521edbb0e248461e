"use strict";
// Edges between nodes, and the second view of the map: a circle for each class, and the links between classes.

// Neighbors of every node on the map. `edges` holds for each node how many of its neighbors have a higher number, then the
// gaps between their numbers; 7 bits in each byte.
const adjacency = (() => {
  let made = null;
  function make() {
    const bytes = story.edges, from = [], to = [], degree = new Uint32Array(count + 1);
    let at = 0;
    const next = () => { let value = 0, shift = 0, byte; do { byte = bytes[at++]; value |= (byte & 127) << shift; shift += 7; } while (byte & 128); return value; };
    for (let i = 0; i < count; i++) {
      let j = i;
      for (let n = next(); n > 0; n--) { j += next(); from.push(i); to.push(j); degree[i + 1]++; degree[j + 1]++; }
    }
    for (let i = 0; i < count; i++) degree[i + 1] += degree[i];
    const place = degree.slice(), list = new Uint32Array(2 * from.length);
    for (let k = 0; k < from.length; k++) { list[place[from[k]]++] = to[k]; list[place[to[k]]++] = from[k]; }
    return {starts: degree, list};
  }
  return () => made ?? (made = make());
})();
function linked(i) {
  if (!story.edges) return neighbors(i);
  const {starts, list} = adjacency();
  return list.subarray(starts[i], starts[i + 1]);
}

const classView = (() => {
  if (!story.links) return null;
  let circles = [], at = -1;

  // Edges between and inside classes after the decisions; a class that was just made of nodes has none yet.
  function counts() {
    const between = new Map(), own = new Map();
    for (const [a, b, n] of story.links) {
      const i = Math.min(now.into[a], now.into[b]), j = Math.max(now.into[a], now.into[b]);
      if (i < 0) continue;
      if (i === j) own.set(i, (own.get(i) || 0) + n); else between.set(`${i} ${j}`, (between.get(`${i} ${j}`) || 0) + n);
    }
    return {between: [...between].map(([key, n]) => [...key.split(" ").map(Number), n]).sort((a, b) => b[2] - a[2]), own};
  }

  // Circles and diamonds where the nodes are, then pushed apart until none covers another. `r` is how far one reaches.
  const DIAMOND = 1.3, NAME = 22;  // reach of a diamond, by its radius; pixels of the name below
  function place(width, height) {
    const {sizes, middles} = map.groups(), most = Math.max(1, ...sizes.values()), pad = 34;
    const reach = (i, n) => (7 + Math.min(width, height) * 0.075 * Math.sqrt(n / most)) * (story.classes[i].isNew ? DIAMOND : 1);
    const list = [...sizes].filter(([i]) => i >= 0 && i !== NO_CLASS).map(([i, n]) => ({i, n, r: reach(i, n), x: middles.get(i)[0], y: middles.get(i)[1]}));
    const span = of => { const all = list.map(c => c[of]), low = Math.min(...all), high = Math.max(...all); return [low, high - low || 1]; };
    if (!list.length) return [];
    const [x0, xs] = span("x"), [y0, ys] = span("y");
    for (const c of list) { c.x = pad + (c.x - x0) / xs * (width - 2 * pad); c.y = pad + (c.y - y0) / ys * (height - 2 * pad); }
    for (let step = 0; step < 120; step++)
      for (const [k, a] of list.entries()) {
        for (const b of list.slice(k + 1)) {
          const dx = b.x - a.x || 0.01 * (k + 1), dy = b.y - a.y || 0.01, apart = Math.hypot(dx, dy), close = a.r + b.r + NAME - apart;
          if (close > 0) { const f = close / apart / 2; a.x -= dx * f; a.y -= dy * f; b.x += dx * f; b.y += dy * f; }
        }
        a.x = Math.max(a.r + 6, Math.min(width - a.r - 6, a.x)); a.y = Math.max(a.r + 6, Math.min(height - a.r - NAME, a.y));
      }
    return list.sort((a, b) => b.n - a.n);
  }

  function paintClasses(context, width, height, {ink, write}) {
    const stale = circles.width !== width || circles.height !== height || circles.of !== map.groups();
    if (stale) circles = Object.assign(place(width, height), {width, height, of: map.groups()});
    const byClass = new Map(circles.map(c => [c.i, c])), {between} = counts(), most = between.length ? between[0][2] : 1;
    context.strokeStyle = ink;
    for (const [i, j, n] of between) {
      const a = byClass.get(i), b = byClass.get(j);
      if (!a || !b) continue;
      const mine = at < 0 || a.i === at || b.i === at;
      context.globalAlpha = mine ? 0.3 + 0.4 * n / most : 0.05; context.lineWidth = 0.6 + 9 * Math.sqrt(n / most);
      context.beginPath(); context.moveTo(a.x, a.y); context.lineTo(b.x, b.y); context.stroke();
    }
    context.globalAlpha = 1;
    for (const c of circles) paint(context, look(c.i), c.x, c.y, story.classes[c.i].isNew ? c.r / DIAMOND : c.r);
    context.font = "600 13px system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "middle"; context.lineJoin = "round";
    const taken = [];
    for (const c of circles) {
      const full = className(c.i), name = `${full.length > 26 ? `${full.slice(0, 25)}…` : full}`, half = context.measureText(name).width / 2 + 4;
      const px = Math.max(half, Math.min(width - half, c.x)), py = c.y + c.r + NAME / 2;
      if (taken.some(t => Math.abs(t.px - px) < t.half + half && Math.abs(t.py - py) < 16)) continue;
      taken.push({px, py, half});
      write(name, px, py);
    }
    if (at >= 0 && byClass.has(at)) {
      const c = byClass.get(at);
      context.lineWidth = 2.5; context.strokeStyle = ink; context.beginPath(); context.arc(c.x, c.y, c.r + 5, 0, 2 * Math.PI); context.stroke();
    }
  }

  const under = (px, py) => circles.find(c => Math.hypot(c.x - px, c.y - py) < c.r + 6)?.i ?? -1;
  const linksOf = i => counts().between.filter(([a, b]) => a === i || b === i).map(([a, b, n]) => [a === i ? b : a, n]);
  function point(i) {
    if (i === at) return;
    at = i;
    map.redraw();
    if (i >= 0) tell(`${className(i)}: ${noun(map.groups().sizes.get(i) || 0, "node")}`);
  }
  const tell = text => { $("class-status").textContent = text; };

  // The nodes of a class, lit on the map of nodes, and what it is linked to.
  function open(i) {
    if (i < 0) return;
    toggle(false);
    map.lit = i;
    showLegend();
    const {own} = counts(), links = linksOf(i).slice(0, 6);
    $("card").replaceChildren(
      element("div", {class: "head"}, element("h3", {}, className(i)), element("button", {"aria-label": "Close", class: "small", onclick: () => { map.lit = null; closeNode(); showLegend(); }}, "×")),
      element("p", {class: "quiet"}, `${noun(map.groups().sizes.get(i) || 0, "node")} on the map, ${noun(own.get(i) || 0, "edge")} inside. Linked to:`),
      element("div", {class: "chips"}, ...links.map(([j, n]) => element("button", {class: "node", onclick: () => open(j)}, glyph(look(j)), `${className(j)} ${n.toLocaleString("en")}`))),
      ...(document.querySelector(`[data-card="${i}"]`) ? [element("button", {class: "small", onclick: () => {
        const card = document.querySelector(`[data-card="${i}"]`);
        card.closest("details")?.setAttribute("open", ""); card.scrollIntoView({block: "center"}); card.querySelector(".name").focus({preventScroll: true});
      }}, "Go to its card")] : []));
    $("card").hidden = false;
  }

  function key(pressed) {
    const alone = circles.map(c => c.i);
    if (["ArrowRight", "ArrowDown"].includes(pressed)) point(alone[(alone.indexOf(at) + 1) % alone.length]);
    else if (["ArrowLeft", "ArrowUp"].includes(pressed)) point(alone[(alone.indexOf(at) + alone.length - (at < 0 ? 0 : 1)) % alone.length]);
    else if (pressed === "Enter") open(at);
    else if (pressed === "Escape") toggle(false);
    else return false;
    return true;
  }

  function toggle(on) {
    const box = $("class-view");
    box.checked = on;
    at = -1;
    if (on) {
      if (map.mode !== "class") document.querySelector("[name=view][value=class]").click();
      map.lit = null; closeNode(); map.tip.hidden = true;
    }
    map.view.classes = on ? paintClasses : null;
    map.view.hover = (px, py) => point(under(px, py));
    map.view.open = (px, py) => open(under(px, py));
    map.view.key = key;
    tell(on ? "Classes by size; lines are edges between them. Click one, or press the arrow keys and Enter, to open it." : "");
    showLegend();
    map.redraw();
  }
  $("class-view").addEventListener("change", e => toggle(e.target.checked));
  return {open, toggle, get on() { return map.view.classes !== null; }};
})();
