"use strict";
// The map: a canvas that draws, moves, zooms and finds what is under the pointer. Coordinates of nodes are 0..1.

const map = (() => {
  const canvas = $("map"), context = canvas.getContext("2d"), tip = $("tip"), CELLS = 200;
  const x = new Float32Array(count), y = new Float32Array(count);
  for (let i = 0; i < count; i++) { x[i] = story.xy[2 * i] / 65535; y[i] = 1 - story.xy[2 * i + 1] / 65535; }
  const isNewIn = i => story.classes[story.best[i * story.likely]].isNew;
  const order = [...Array(count).keys()].sort((a, b) => isNewIn(a) - isNewIn(b) || a - b);
  let width = 0, height = 0, dots = 1, zoom = 1, left = 0, top = 0;  // screen = coordinate * zoom + (left, top)
  let all = true;  // whether the whole map is shown, and shall be after the window has another size
  let mode = "class", lit = null, selected = -1, cross = false, picture = null, later = 0, frame = 0;

  // A grid of buckets, so that finding the node under the pointer does not look at all of them.
  const bucketOf = i => Math.min(CELLS - 1, x[i] * CELLS | 0) * CELLS + Math.min(CELLS - 1, y[i] * CELLS | 0);
  const starts = new Uint32Array(CELLS * CELLS + 1), inside = new Uint32Array(count);
  for (let i = 0; i < count; i++) starts[bucketOf(i) + 1]++;
  for (let b = 0; b < CELLS * CELLS; b++) starts[b + 1] += starts[b];
  { const next = starts.slice(); for (let i = 0; i < count; i++) inside[next[bucketOf(i)]++] = i; }

  function nearest(px, py, reach) {
    const cx = (px - left) / zoom, cy = (py - top) / zoom, r = reach / zoom;
    const low = v => Math.max(0, Math.min(CELLS - 1, Math.floor((v - r) * CELLS))), up = v => Math.max(0, Math.min(CELLS - 1, Math.floor((v + r) * CELLS)));
    let best = -1, least = r * r;
    for (let a = low(cx); a <= up(cx); a++)
      for (let k = starts[a * CELLS + low(cy)]; k < starts[a * CELLS + up(cy) + 1]; k++) {
        const i = inside[k], d = (x[i] - cx) ** 2 + (y[i] - cy) ** 2;
        if (d < least && shows(i)) { least = d; best = i; }
      }
    return best;
  }

  // What a node counts as in the present view: the number of a class, of a true class, or of a degree of sureness.
  const shown = () => mode === "class" ? other : null;
  const groupOf = i => shown() ? other.groupOf(i) : mode === "true" ? story.true[i] : mode === "class" ? classOf(i) : SURENESS.findIndex(s => probability(i) >= s.from);
  const nameOf = g => shown() ? other.nameOf(g) : mode === "true" ? story.trueNames[g] : className(g);
  const lookOf = g => shown() ? other.lookOf(g) : mode === "true" ? trueLook(g) : mode === "class" ? look(g) : {color: SURENESS[g].color, shape: ["circle", "circle", "diamond"][g], hollow: false};
  const shows = i => lit === null || lit === groupOf(i);
  const ink = () => isDark() ? "#e8e6e1" : "#22262b";
  const paper = () => isDark() ? "#16181b" : "#ffffff";

  // The nodes fill the coordinates from 0 to 1 along one axis, and are centered on the other.
  const extent = of => count ? 1 - 2 * of.reduce((a, b) => Math.min(a, b), 0.49) : 1, wide = extent(x), high = extent(y);
  const fitting = () => Math.min(width / wide, height / high) || 1;
  const radius = () => Math.min(9, Math.max(1.3, 30 / Math.sqrt(Math.max(count, 40)) ** 0.62) * (zoom / fitting()) ** 0.4);

  function points(on) {
    const r = radius(), stamps = new Map();
    for (const faint of lit === null ? [false] : [true, false]) {
      on.globalAlpha = faint ? 0.1 : count > 20000 ? 0.75 : 0.9;
      for (const i of order) {
        const g = groupOf(i);
        if (lit !== null && faint === (lit === g)) continue;
        const px = x[i] * zoom + left, py = y[i] * zoom + top;
        if (px < -10 || py < -10 || px > width + 10 || py > height + 10) continue;
        const size = mode === "unsure" ? r * [0.8, 1, 1.25][g] : r;
        if (!stamps.has(g)) stamps.set(g, stamp(lookOf(g), size, dots));
        const picture = stamps.get(g);
        on.drawImage(picture, px - picture.width / dots / 2, py - picture.height / dots / 2, picture.width / dots, picture.height / dots);
      }
    }
    on.globalAlpha = 1;
  }

  // Names of classes in the middle of their nodes, the largest first, none over another.
  function labels() {
    if (mode === "unsure") return;
    const members = new Map();
    for (let i = 0; i < count; i++) { const g = groupOf(i); if (!members.has(g)) members.set(g, []); members.get(g).push(i); }
    const taken = [], middle = (list, of) => Float32Array.from(list, i => of[i]).sort()[list.length >> 1];
    context.font = "600 13px system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const [g, list] of [...members].sort((a, b) => b[1].length - a[1].length)) {
      if (g < 0 || g === NO_CLASS || lit !== null && lit !== g) continue;
      const full = nameOf(g), name = full.length > 32 ? `${full.slice(0, 31)}…` : full;
      const half = context.measureText(name).width / 2 + 5;
      const px = Math.max(half, Math.min(width - half, middle(list, x) * zoom + left));
      let py = middle(list, y) * zoom + top;
      const overlaps = () => taken.find(t => Math.abs(t.px - px) < t.half + half && Math.abs(t.py - py) < 19);
      for (let tries = 0, other; tries < 9 && (other = overlaps()); tries++) py = other.py + (py < other.py ? -19.5 : 19.5);
      if (overlaps() || py < 8 || py > height - 8) continue;
      taken.push({px, py, half});
      context.strokeStyle = paper(); context.lineWidth = 5; context.globalAlpha = 0.85; context.strokeText(name, px, py);
      context.globalAlpha = 1; context.fillStyle = ink(); context.fillText(name, px, py);
    }
  }

  function selection() {
    if (selected < 0) return;
    const px = x[selected] * zoom + left, py = y[selected] * zoom + top;
    context.strokeStyle = ink(); context.lineWidth = 1; context.globalAlpha = 0.5;
    for (const j of neighbors(selected)) {
      context.beginPath(); context.moveTo(px, py); context.lineTo(x[j] * zoom + left, y[j] * zoom + top); context.stroke();
    }
    context.globalAlpha = 1; context.lineWidth = 2.5;
    context.beginPath(); context.arc(px, py, radius() + 6, 0, 2 * Math.PI); context.stroke();
  }

  function draw() {
    frame = 0;
    const store = element("canvas", {width: canvas.width, height: canvas.height}), on = store.getContext("2d");
    on.scale(dots, dots);
    points(on);
    picture = {store, zoom, left, top};
    compose();
  }
  function compose() {
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.fillStyle = paper(); context.fillRect(0, 0, width, height);
    const k = zoom / picture.zoom;  // while the map moves, the last picture of a large graph moves with it
    context.drawImage(picture.store, left - picture.left * k, top - picture.top * k, width * k, height * k);
    selection(); labels();
    if (cross) {
      context.strokeStyle = ink(); context.lineWidth = 1; context.beginPath();
      context.moveTo(width / 2 - 9, height / 2); context.lineTo(width / 2 + 9, height / 2);
      context.moveTo(width / 2, height / 2 - 9); context.lineTo(width / 2, height / 2 + 9); context.stroke();
    }
  }
  function redraw() { if (!frame) frame = requestAnimationFrame(draw); }
  function moved() {
    all = false;
    if (count <= 15000) return redraw();
    if (picture) requestAnimationFrame(compose);
    clearTimeout(later); later = setTimeout(redraw, 140);
  }

  function whole() {
    all = true; zoom = 0.94 * fitting(); left = (width - zoom) / 2; top = (height - zoom) / 2;
    redraw();
  }
  function zoomBy(factor, px = width / 2, py = height / 2) {
    const next = Math.min(400 * fitting(), Math.max(0.3 * fitting(), zoom * factor)), k = next / zoom;
    left = px - (px - left) * k; top = py - (py - top) * k; zoom = next;
    moved();
  }
  function center(i) {
    all = false; zoom = Math.max(zoom, 3 * fitting()); left = width / 2 - x[i] * zoom; top = height / 2 - y[i] * zoom;
    redraw();
  }
  function fit() {
    const box = canvas.parentElement.getBoundingClientRect();
    if (!box.width) return;
    const factor = box.width / (width || box.width);
    width = box.width; height = box.height; dots = Math.min(devicePixelRatio || 1, 2);
    canvas.width = Math.round(width * dots); canvas.height = Math.round(height * dots);
    if (all) { whole(); draw(); } else { zoom *= factor; left *= factor; top *= factor; draw(); }
  }

  function hint(i, px, py) {
    tip.hidden = i < 0;
    canvas.style.cursor = i < 0 ? "grab" : "pointer";
    if (i < 0) return;
    tip.replaceChildren(element("b", {}, story.names[i]), element("span", {}, shown() ? nameOf(groupOf(i)) : className(classOf(i)) + sure(i, ", ")));
    const box = canvas.getBoundingClientRect();
    tip.style.left = `${Math.min(box.left + px + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(box.top + py + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  const pointers = new Map();
  let travelled = 0;
  canvas.addEventListener("pointerdown", e => { canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, e); travelled = 0; hint(-1); cross = false; });
  canvas.addEventListener("pointermove", e => {
    const before = pointers.get(e.pointerId);
    if (!before) return hint(nearest(e.offsetX, e.offsetY, 12), e.offsetX, e.offsetY);
    const dx = e.offsetX - before.offsetX, dy = e.offsetY - before.offsetY, other = [...pointers.values()].find(p => p.pointerId !== e.pointerId);
    travelled += Math.abs(dx) + Math.abs(dy);
    pointers.set(e.pointerId, e);
    if (other) {
      const apart = p => Math.hypot(p.offsetX - other.offsetX, p.offsetY - other.offsetY);
      return zoomBy(apart(e) / Math.max(apart(before), 1), other.offsetX, other.offsetY);
    }
    left += dx; top += dy; moved();
  });
  const released = e => {
    if (pointers.delete(e.pointerId) && e.type === "pointerup" && travelled < 5) {
      const i = nearest(e.offsetX, e.offsetY, 14);
      if (i >= 0) openNode(i); else if (!pointers.size) closeNode();
    }
  };
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, released);
  canvas.addEventListener("pointerleave", () => hint(-1));
  canvas.addEventListener("wheel", e => { e.preventDefault(); zoomBy(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), e.offsetX, e.offsetY); }, {passive: false});
  canvas.addEventListener("dblclick", e => zoomBy(2, e.offsetX, e.offsetY));
  canvas.addEventListener("blur", () => { cross = false; redraw(); });
  canvas.addEventListener("keydown", e => {
    const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    cross = true;
    if (steps[e.key]) { left += steps[e.key][0]; top += steps[e.key][1]; moved(); }
    else if (e.key === "+" || e.key === "=") zoomBy(1.4);
    else if (e.key === "-") zoomBy(1 / 1.4);
    else if (e.key === "0") whole();
    else if (e.key === "Enter") { const i = nearest(width / 2, height / 2, 80); if (i >= 0) openNode(i); }
    else if (e.key === "Escape") { lit = null; closeNode(); showLegend(); redraw(); }
    else return;
    e.preventDefault();
  });
  $("closer").addEventListener("click", () => zoomBy(1.6));
  $("farther").addEventListener("click", () => zoomBy(1 / 1.6));
  $("whole").addEventListener("click", whole);
  new ResizeObserver(fit).observe(canvas.parentElement);
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(event, () => { printing = on; tip.hidden = true; for (const watcher of watchers) watcher(); if (picture) draw(); });
  darkQuery.addEventListener("change", () => { for (const watcher of watchers) watcher(); });

  return {
    redraw, center, groupOf, lookOf,
    select(i) { selected = i; redraw(); },
    get mode() { return mode; },
    set mode(value) { mode = value; lit = null; redraw(); },
    get lit() { return lit; },
    set lit(value) { lit = value; redraw(); },
  };
})();
watchers.push(map.redraw);
