"use strict";
// The slider: the map and a list show the classes at another number of new classes.

if (story.numbers.length) {
  for (const one of story.numbers) one.of = unpacked(one.of, Uint16Array);
  const slider = $("number"), own = story.numbers.findIndex(one => one.number === story.numNew), start = story.numbers[own];
  const sizeOf = new Map(start.classes.map(c => [c.id, c.size]));
  const words = n => `${n} new ${n === 1 ? "class" : "classes"}`;

  function row(c) {
    const before = sizeOf.get(c.id), change = before === undefined ? "only at this number" : before === c.size ? "" : `${before.toLocaleString("en")} in this run`;
    return element("tr", {}, element("th", {scope: "row"}, glyph(lookAt(c.isNew, placeInPalette(c))), ` ${c.name}`),
      element("td", {}, String(c.id)), element("td", {}, c.size.toLocaleString("en")), element("td", {class: "quiet"}, change));
  }

  function showNumber() {
    const one = story.numbers[Number(slider.value)], isOwn = one === start;
    const said = [one.number === story.numCounted ? "counted" : "", isOwn ? "this run" : "preview"].filter(Boolean).join(", ");
    slider.setAttribute("aria-valuetext", `${words(one.number)} (${said})`);
    $("number-text").textContent = `${words(one.number)} (${said})`;
    other = isOwn ? null : {
      groupOf: i => one.of[i], nameOf: g => one.classes[g].name, isNew: g => one.classes[g].isNew,
      lookOf: g => lookAt(one.classes[g].isNew, placeInPalette(one.classes[g])),
    };
    const here = new Set(one.classes.map(c => c.id)), gone = start.classes.filter(c => c.isNew && !here.has(c.id)).map(c => c.name);
    $("number-classes").replaceChildren(...one.classes.filter(c => c.isNew).sort((a, b) => b.size - a.size).map(row));
    $("number-gone").textContent = gone.length ? `Not at this number: ${gone.join(", ")}.` : "";
    $("number-use").hidden = isOwn;
    if (!isOwn && classView.on) classView.toggle(false);  // links are known for the classes of the run alone
    $("number-command").textContent = `nodenova classes RUN --num-new ${one.number} --use`;
    map.decided();
    map.lit = null;
    showLegend();
  }

  slider.value = own;
  slider.addEventListener("input", showNumber);
  $("class-view").addEventListener("change", e => { if (e.target.checked && other) { slider.value = own; showNumber(); } });
  watchers.push(showNumber);
}
