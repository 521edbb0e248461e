"use strict";
// The legend beside the map, and what the map is colored by.

function showLegend() {
  const {sizes} = map.groups();
  const instead = map.mode === "class" ? other : null;
  const nameOf = g => instead ? instead.nameOf(g) : map.mode === "unsure" ? SURENESS[g].name : map.mode === "true" ? (g === NO_CLASS ? "unknown" : story.trueNames[g]) : className(g);
  const isNew = g => instead ? instead.isNew(g) : map.mode === "class" && g >= 0 && story.classes[g].isNew;
  const groups = [...sizes.keys()].sort((a, b) => isNew(b) - isNew(a) || (map.mode === "unsure" ? a - b : sizes.get(b) - sizes.get(a)));
  $("legend").replaceChildren(...groups.map(g => element("li", {}, element("button",
    {"aria-pressed": String(map.lit === g), onclick: () => { if (classView?.on && g >= 0 && g !== NO_CLASS) return classView.open(g); map.lit = map.lit === g ? null : g; showLegend(); }},
    glyph(map.lookOf(g)), element("span", {}, nameOf(g)), element("span", {class: "quiet"}, sizes.get(g).toLocaleString("en"))))));
  showSelection();
}

for (const choice of document.querySelectorAll("[name=view]"))
  choice.addEventListener("change", () => { if (classView?.on) classView.toggle(false); map.mode = choice.value; showLegend(); });

watchers.push(() => { if (map.lit !== null && map.mode === "class" && !other && map.lit >= 0 && !alive(map.lit)) map.lit = null; showLegend(); });
