"use strict";
// The map: a canvas that draws, moves, zooms and finds what is under the pointer. Coordinates of nodes are 0..1.
// Few nodes are drawn as shapes; many are blended into an array of pixels, which takes 100,000 of them a few milliseconds.

const map = (() => {
  const canvas = $("map"), context = canvas.getContext("2d"), tip = $("tip"), CELLS = 200;
  const SHAPES = 6000;  // nodes up to which each is drawn as a shape
  const SLOW = 40;  // milliseconds of drawing above which the last picture moves with the map
  const MOST_LINES = 2000;  // drawn edges of a selection
  const x = new Float32Array(count), y = new Float32Array(count);
  for (let i = 0; i < count; i++) { x[i] = story.xy[2 * i] / 65535; y[i] = 1 - story.xy[2 * i + 1] / 65535; }
  const isNewIn = i => story.classes[story.best[i * story.likely]].isNew;
  const order = new Uint32Array(count);  // discovered classes are drawn over known ones
  { let k = 0; for (const last of [false, true]) for (let i = 0; i < count; i++) if (Boolean(isNewIn(i)) === last) order[k++] = i; }
  let width = 0, height = 0, dots = 1, zoom = 1, left = 0, top = 0;  // screen = coordinate * zoom + (left, top)
  let framed = "middle";  // what is shown, and shall be after the window has another size: the middle, all or null
  let mode = "class", lit = null, selected = -1, under = -1, cross = false, picture = null, later = 0, frame = 0, cost = 0;
  let chosen = null;  // selected nodes: one byte for each node, or null
  let shape = null;  // the lasso or box that is being drawn, on the screen

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

  // The groups of the nodes and the middle of each group, until a decision or another view changes them.
  let grouped = null;
  function groups() {
    if (grouped) return grouped;
    const of = new Int32Array(count), sizes = new Map();
    for (let i = 0; i < count; i++) { const g = of[i] = groupOf(i); sizes.set(g, (sizes.get(g) || 0) + 1); }
    return grouped = {of, sizes, middles: middlesOf(of, sizes)};
  }

  // The mean of the nodes around the fullest place of each group: a group of two parts has its name on one of them.
  function middlesOf(of, sizes) {
    const SIDE = 24, [a, b, c, d] = start, cut = v => Math.max(0, Math.min(SIDE - 1, Math.floor(v * SIDE)));
    const column = i => cut((x[i] - a) / (c - a || 1)), row = i => cut((y[i] - b) / (d - b || 1));
    const cells = new Map([...sizes.keys()].map(g => [g, new Uint32Array(SIDE * SIDE)])), fullest = new Map();
    for (let i = 0; i < count; i++) cells.get(of[i])[row(i) * SIDE + column(i)]++;
    for (const [g, counts] of cells) {
      const best = {at: [0, 0], n: -1, x: 0, y: 0, of: 0};
      for (let r = 0; r < SIDE; r++) for (let k = 0; k < SIDE; k++) {
        let n = counts[r * SIDE + k];  // its own nodes count twice, so that it is not beside them
        for (let i = Math.max(0, r - 1); i <= Math.min(SIDE - 1, r + 1); i++)
          for (let j = Math.max(0, k - 1); j <= Math.min(SIDE - 1, k + 1); j++) n += counts[i * SIDE + j];
        if (n > best.n) { best.n = n; best.at = [r, k]; }
      }
      fullest.set(g, best);
    }
    for (let i = 0; i < count; i++) {
      const best = fullest.get(of[i]);
      if (Math.abs(row(i) - best.at[0]) <= 1 && Math.abs(column(i) - best.at[1]) <= 1) { best.x += x[i]; best.y += y[i]; best.of++; }
    }
    return new Map([...fullest].map(([g, best]) => [g, [best.x / best.of, best.y / best.of]]));
  }

  // Frames: all nodes, and the middle 99% of them along each axis, so that a few far ones do not make the rest a dot.
  const box = (low, high) => { const xs = x.slice().sort(), ys = y.slice().sort(), at = (of, q) => of[Math.min(count - 1, Math.max(0, Math.round(q * (count - 1))))];
    return count ? [at(xs, low), at(ys, low), at(xs, high), at(ys, high)] : [0, 0, 1, 1]; };
  const whole = box(0, 1), middle = box(0.005, 0.995);
  const room = ([a, b, c, d]) => Math.min(width / Math.max(c - a, 1e-6), height / Math.max(d - b, 1e-6)) || 1;
  const outside = () => { const [a, b, c, d] = middle, wide = 0.15 * (c - a), high = 0.15 * (d - b); let n = 0;
    for (let i = 0; i < count; i++) if (x[i] < a - wide || x[i] > c + wide || y[i] < b - high || y[i] > d + high) n++; return n; };
  const strays = count >= 200 ? outside() : 0;
  const start = strays ? middle : whole;  // without nodes far outside there is nothing to leave out
  const fitting = () => room(start);
  const radius = () => Math.min(9, Math.max(count > 300000 ? 0.7 : 1.3, 30 / Math.sqrt(Math.max(count, 40)) ** 0.62) * Math.max(zoom / fitting(), 0.2) ** 0.4);

  const dimmed = () => lit !== null || chosen !== null;
  const stands = (i, g) => (lit === null || lit === g) && (chosen === null || chosen[i] === 1);
  const sizeIn = (r, g) => mode === "unsure" ? r * [0.8, 1, 1.25][g] : r;
  const grey = () => isDark() ? "#4a4e54" : "#cfd1d4";
  const faint = g => ({...lookOf(g), color: grey()});

  function shapes(on) {
    const r = radius(), {of} = groups(), stamps = new Map();
    for (const back of dimmed() ? [true, false] : [false]) {
      on.globalAlpha = back ? 0.6 : 0.9;
      for (const i of order) {
        const g = of[i];
        if (dimmed() && back === stands(i, g)) continue;
        const px = x[i] * zoom + left, py = y[i] * zoom + top;
        if (px < -10 || py < -10 || px > width + 10 || py > height + 10) continue;
        const key = `${back} ${g}`;
        if (!stamps.has(key)) stamps.set(key, stamp(back ? faint(g) : lookOf(g), sizeIn(r, g), dots));
        const drawn = stamps.get(key);
        on.drawImage(drawn, px - drawn.width / dots / 2, py - drawn.height / dots / 2, drawn.width / dots, drawn.height / dots);
      }
    }
    on.globalAlpha = 1;
  }

  // A drawn point as offsets of pixels and their weights from 0 to 256, and the color as numbers.
  function mask(appearance, r, strength, across) {
    const drawn = stamp(appearance, r, dots), side = drawn.width, half = side >> 1, at = [], weights = [];
    const bytes = drawn.getContext("2d").getImageData(0, 0, side, side).data;
    for (let k = 0; k < side * side; k++) {
      const weight = Math.round(bytes[4 * k + 3] * strength * 256 / 255);
      if (weight > 8) { at.push((Math.floor(k / side) - half) * across + k % side - half); weights.push(weight); }
    }
    const [red, green, blue] = [1, 3, 5].map(k => parseInt(appearance.color.slice(k, k + 2), 16));
    return {at: Int32Array.from(at), weights: Int32Array.from(weights), redBlue: blue << 16 | red, green: green << 8, half};
  }

  function pixels(on) {
    const across = on.canvas.width, down = on.canvas.height, image = on.createImageData(across, down), out = new Uint32Array(image.data.buffer);
    const r = radius(), {of, sizes} = groups(), [p0, p1, p2] = [1, 3, 5].map(k => parseInt(paper().slice(k, k + 2), 16));
    out.fill((255 << 24 | p2 << 16 | p1 << 8 | p0) >>> 0);
    const scale = zoom * dots, dx = left * dots, dy = top * dots;
    for (const back of dimmed() ? [true, false] : [false]) {
      const masks = new Map([...sizes.keys()].map(g => [g, mask(back ? faint(g) : lookOf(g), sizeIn(r, g), back ? 0.4 : 0.8, across)]));
      let last = null, now = null;
      for (let k = 0; k < count; k++) {
        const i = order[k], g = of[i];
        if (back !== (dimmed() && !stands(i, g))) continue;
        if (g !== last) { now = masks.get(g); last = g; }
        const px = x[i] * scale + dx | 0, py = y[i] * scale + dy | 0, edge = now.half;
        if (px < edge || py < edge || px >= across - edge || py >= down - edge) continue;
        const center = py * across + px, {at, weights, redBlue, green} = now;
        for (let q = 0; q < at.length; q++) {
          const o = center + at[q], w = weights[q], v = 256 - w, was = out[o];
          const rb = (Math.imul(was & 0xff00ff, v) + Math.imul(redBlue, w)) >>> 8 & 0xff00ff;
          out[o] = (0xff000000 | rb | (Math.imul(was & 0xff00, v) + Math.imul(green, w)) >>> 8 & 0xff00) >>> 0;
        }
      }
    }
    on.putImageData(image, 0, 0);
  }

  // Names of classes in the middle of their nodes, the largest first, none over another.
  function labels() {
    if (mode === "unsure") return;
    const {sizes, middles} = groups(), taken = [];
    context.font = "600 13px system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const [g] of [...sizes].sort((a, b) => b[1] - a[1])) {
      if (g < 0 || g === NO_CLASS || lit !== null && lit !== g) continue;
      const full = nameOf(g), name = full.length > 32 ? `${full.slice(0, 31)}…` : full, [cx, cy] = middles.get(g);
      const half = context.measureText(name).width / 2 + 5, at = cx * zoom + left;
      let py = cy * zoom + top;
      if (at < -40 || at > width + 40 || py < -20 || py > height + 20) continue;
      const px = Math.max(half, Math.min(width - half, at));
      const overlaps = () => taken.find(t => Math.abs(t.px - px) < t.half + half && Math.abs(t.py - py) < 19);
      for (let tries = 0, by; tries < 9 && (by = overlaps()); tries++) py = by.py + (py < by.py ? -19.5 : 19.5);
      if (overlaps() || py < 8 || py > height - 8) continue;
      taken.push({px, py, half});
      write(name, px, py);
    }
  }
  function write(name, px, py) {
    context.strokeStyle = paper(); context.lineWidth = 5; context.globalAlpha = 0.85; context.strokeText(name, px, py);
    context.globalAlpha = 1; context.fillStyle = ink(); context.fillText(name, px, py);
  }

  // Edges of the node that is open, of the one under the pointer, and of the selection.
  function lines() {
    const at = i => [x[i] * zoom + left, y[i] * zoom + top], line = (i, j) => { context.moveTo(...at(i)); context.lineTo(...at(j)); };
    const ofNode = (i, strength) => {
      context.globalAlpha = strength; context.beginPath();
      const list = linked(i);
      for (let k = 0; k < Math.min(list.length, MOST_LINES); k++) line(i, list[k]);
      context.stroke();
    };
    context.strokeStyle = ink(); context.lineWidth = 1;
    if (chosen) {
      const ends = [];
      for (let i = 0; i < count && ends.length < MOST_LINES; i++) if (chosen[i])
        for (const j of linked(i)) if ((j > i || !chosen[j]) && ends.length < MOST_LINES) ends.push([i, j]);
      context.globalAlpha = Math.max(0.03, Math.min(0.3, 30 / ends.length)); context.beginPath();  // many stay see-through
      for (const [i, j] of ends) line(i, j);
      context.stroke();
    }
    if (under >= 0 && under !== selected) ofNode(under, 0.35);
    if (selected >= 0) ofNode(selected, 0.5);
    context.globalAlpha = 1;
    for (const [i, thick] of [[under, 1.5], [selected, 2.5]]) if (i >= 0) {
      context.lineWidth = thick; context.beginPath();
      context.arc(...at(i), radius() + 6, 0, 2 * Math.PI); context.stroke();
    }
  }

  function outlineOfShape() {
    if (!shape || shape.length < 2) return;
    context.beginPath(); shape.forEach(([px, py], k) => k ? context.lineTo(px, py) : context.moveTo(px, py)); context.closePath();
    context.globalAlpha = 0.12; context.fillStyle = ink(); context.fill();
    context.globalAlpha = 1; context.strokeStyle = ink(); context.lineWidth = 1.5; context.setLineDash([5, 4]); context.stroke(); context.setLineDash([]);
  }

  function draw() {
    frame = 0;
    const begun = performance.now();
    if (view.classes) { compose(); return; }
    const store = picture?.store ?? element("canvas");
    if (store.width !== canvas.width || store.height !== canvas.height) { store.width = canvas.width; store.height = canvas.height; }
    const on = store.getContext("2d", {willReadFrequently: true});
    if (count > SHAPES) pixels(on);
    else { on.setTransform(1, 0, 0, 1, 0, 0); on.clearRect(0, 0, store.width, store.height); on.scale(dots, dots); shapes(on); }
    picture = {store, zoom, left, top};
    compose();
    cost = performance.now() - begun;
  }
  function compose() {
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.fillStyle = paper(); context.fillRect(0, 0, width, height);
    if (view.classes) { view.classes(context, width, height, {ink: ink(), paper: paper(), write}); return; }
    const k = zoom / picture.zoom;  // while the map moves, the last picture of a very large graph moves with it
    context.drawImage(picture.store, left - picture.left * k, top - picture.top * k, width * k, height * k);
    lines(); labels(); outlineOfShape();
    if (cross) {
      context.strokeStyle = ink(); context.lineWidth = 1; context.beginPath();
      context.moveTo(width / 2 - 9, height / 2); context.lineTo(width / 2 + 9, height / 2);
      context.moveTo(width / 2, height / 2 - 9); context.lineTo(width / 2, height / 2 + 9); context.stroke();
    }
  }
  let composing = 0;
  const overlay = () => { if (!composing && picture) composing = requestAnimationFrame(() => { composing = 0; if (!frame) compose(); }); };
  function redraw() { if (!frame) frame = requestAnimationFrame(draw); }
  function moved() {
    framed = null;
    if (anchor) shape = corners();
    if (cost < SLOW) return redraw();
    overlay();
    clearTimeout(later); later = setTimeout(redraw, 140);
  }

  function show(what) {
    framed = what;
    const at = what === "all" ? whole : start;
    zoom = 0.92 * room(at); left = width / 2 - (at[0] + at[2]) / 2 * zoom; top = height / 2 - (at[1] + at[3]) / 2 * zoom;
    $("strays").hidden = !strays || what === "all";
    redraw();
  }
  $("strays").textContent = `${strays.toLocaleString("en")} ${strays === 1 ? "node lies" : "nodes lie"} far outside. Whole map shows ${strays === 1 ? "it" : "them"}.`;
  function zoomBy(factor, px = width / 2, py = height / 2) {
    const next = Math.min(400 * fitting(), Math.max(0.3 * room(whole), zoom * factor)), k = next / zoom;
    left = px - (px - left) * k; top = py - (py - top) * k; zoom = next;
    moved();
  }
  function pan(dx, dy) { left += dx; top += dy; moved(); }
  function center(i) {
    framed = null; zoom = Math.max(zoom, 3 * fitting()); left = width / 2 - x[i] * zoom; top = height / 2 - y[i] * zoom;
    redraw();
  }
  function fit() {
    const bounds = canvas.getBoundingClientRect();  // its parent has a border
    if (!bounds.width) return;
    const factor = bounds.width / (width || bounds.width);
    width = bounds.width; height = bounds.height; dots = Math.min(devicePixelRatio || 1, count > 300000 ? 1 : 2);
    canvas.width = Math.round(width * dots); canvas.height = Math.round(height * dots);
    if (framed) { show(framed); draw(); } else { zoom *= factor; left *= factor; top *= factor; draw(); }
  }

  function hint(i, px, py) {
    if (under !== i) { under = i; overlay(); }
    tip.hidden = i < 0;
    canvas.style.cursor = tool !== "move" ? "crosshair" : i < 0 ? "grab" : "pointer";
    if (i < 0) return;
    tip.replaceChildren(element("b", {}, story.names[i]), element("span", {}, shown() ? nameOf(groupOf(i)) : className(classOf(i)) + sure(i, ", ")));
    placeTip(px, py);
  }
  function placeTip(px, py) {
    const bounds = canvas.getBoundingClientRect();
    tip.style.left = `${Math.min(bounds.left + px + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(bounds.top + py + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  // Nodes inside a lasso on the screen: an odd number of its sides lies to their right.
  function nodesInside(polygon) {
    const hits = [], xs = polygon.map(p => (p[0] - left) / zoom), ys = polygon.map(p => (p[1] - top) / zoom);
    const [a, b, c, d] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], n = xs.length;
    for (let i = 0; i < count; i++) {
      const cx = x[i], cy = y[i];
      if (cx < a || cx > c || cy < b || cy > d || !shows(i)) continue;
      let odd = false;
      for (let k = 0, j = n - 1; k < n; j = k++)
        if (ys[k] > cy !== ys[j] > cy && cx < (xs[j] - xs[k]) * (cy - ys[k]) / (ys[j] - ys[k]) + xs[k]) odd = !odd;
      if (odd) hits.push(i);
    }
    return hits;
  }
  const boxOf = (a, b) => [[a[0], a[1]], [b[0], a[1]], [b[0], b[1]], [a[0], b[1]]];
  const howOf = e => e.shiftKey ? "add" : e.altKey ? "remove" : $("how").value;

  // On the keyboard a box reaches from the place that S marked, which moves with the map, to the cross in the middle.
  let anchor = null;
  const corners = () => boxOf([anchor[0] * zoom + left, anchor[1] * zoom + top], [width / 2, height / 2]);
  function mark(e) {
    if (!anchor) { anchor = [(width / 2 - left) / zoom, (height / 2 - top) / zoom]; shape = corners(); overlay(); return; }
    const hits = nodesInside(corners());
    anchor = shape = null;
    selecting(hits, howOf(e));
  }

  const pointers = new Map();
  let travelled = 0, tool = "move", drawing = null;
  canvas.addEventListener("pointerdown", e => {
    canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, e); travelled = 0; hint(-1); cross = false;
    drawing = null; shape = null; anchor = null;
    const kind = tool === "move" ? e.shiftKey && "box" : tool;
    if (kind && pointers.size === 1 && !view.classes) { drawing = {kind, from: [e.offsetX, e.offsetY]}; shape = [drawing.from]; }
  });
  canvas.addEventListener("pointermove", e => {
    const before = pointers.get(e.pointerId);
    if (view.classes) return view.hover(e.offsetX, e.offsetY);
    if (!before) return hint(nearest(e.offsetX, e.offsetY, 12), e.offsetX, e.offsetY);
    const dx = e.offsetX - before.offsetX, dy = e.offsetY - before.offsetY, second = [...pointers.values()].find(p => p.pointerId !== e.pointerId);
    travelled += Math.abs(dx) + Math.abs(dy);
    if (drawing) {
      const here = [e.offsetX, e.offsetY];
      if (drawing.kind === "box") shape = boxOf(drawing.from, here);
      else if (Math.hypot(here[0] - shape.at(-1)[0], here[1] - shape.at(-1)[1]) > 3) shape.push(here);
      pointers.set(e.pointerId, e);
      return overlay();
    }
    pointers.set(e.pointerId, e);
    if (second) {
      const apart = p => Math.hypot(p.offsetX - second.offsetX, p.offsetY - second.offsetY);
      return zoomBy(apart(e) / Math.max(apart(before), 1), second.offsetX, second.offsetY);
    }
    pan(dx, dy);
  });
  const released = e => {
    if (!pointers.delete(e.pointerId)) return;
    const done = drawing && shape;
    drawing = null; shape = null;
    if (e.type !== "pointerup") return overlay();
    if (done && travelled >= 5) return selecting(done.length > 2 ? nodesInside(done) : [], howOf(e));
    overlay();
    if (travelled >= 5) return;
    if (view.classes) return view.open(e.offsetX, e.offsetY);
    const i = nearest(e.offsetX, e.offsetY, 14);
    if (i >= 0) openNode(i); else if (!pointers.size) closeNode();
  };
  for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, released);
  canvas.addEventListener("pointerleave", () => hint(-1));
  canvas.addEventListener("wheel", e => { e.preventDefault(); if (!view.classes) zoomBy(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), e.offsetX, e.offsetY); }, {passive: false});
  canvas.addEventListener("dblclick", e => { if (tool === "move" && !view.classes) zoomBy(2, e.offsetX, e.offsetY); });
  canvas.addEventListener("blur", () => { cross = false; redraw(); });
  canvas.addEventListener("keydown", e => {
    const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]};
    if (e.ctrlKey || e.metaKey) return;
    if (view.classes) { if (view.key(e.key)) e.preventDefault(); return; }
    cross = true;
    if (steps[e.key]) pan(...steps[e.key].map(step => e.shiftKey ? step / 6 : step));
    else if (e.key === "+" || e.key === "=") zoomBy(1.4);
    else if (e.key === "-") zoomBy(1 / 1.4);
    else if (e.key === "0") show(framed === "middle" && strays ? "all" : "middle");
    else if (e.key.toLowerCase() === "s") mark(e);
    else if (e.key === "Enter") { const i = nearest(width / 2, height / 2, 80); if (i >= 0) openNode(i); }
    else if (e.key === "Escape") {
      if (anchor) { anchor = shape = null; overlay(); }
      else { lit = null; closeNode(); selecting([], "new"); showLegend(); redraw(); }
    } else return;
    e.preventDefault();
  });
  $("closer").addEventListener("click", () => zoomBy(1.6));
  $("farther").addEventListener("click", () => zoomBy(1 / 1.6));
  $("whole").addEventListener("click", () => show("all"));
  for (const choice of document.querySelectorAll("[name=tool]")) choice.addEventListener("change", () => { tool = choice.value; canvas.style.cursor = tool === "move" ? "grab" : "crosshair"; });
  new ResizeObserver(fit).observe(canvas.parentElement);
  for (const [event, on] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(event, () => { printing = on; tip.hidden = true; for (const watcher of watchers) watcher(); if (picture) draw(); });
  darkQuery.addEventListener("change", () => { for (const watcher of watchers) watcher(); });

  // The second view, of classes instead of nodes: functions that draw it and answer the pointer; `classes` is null without it.
  const view = {classes: null};

  return {
    redraw, center, groupOf, lookOf, groups, pan, zoomBy, show, view, tip, placeTip,
    decided() { grouped = null; redraw(); },
    middleOf: g => groups().middles.get(g),
    placeOf: i => [x[i] * zoom + left, y[i] * zoom + top],
    select(i) { selected = i; redraw(); },
    choose(some) { chosen = some; redraw(); },
    get cost() { return cost; },
    get mode() { return mode; },
    set mode(value) { mode = value; lit = null; grouped = null; redraw(); },
    get lit() { return lit; },
    set lit(value) { lit = value; redraw(); },
  };
})();
watchers.push(map.decided);
