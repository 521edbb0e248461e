// The review page in a frame of its own: its style and ids do not meet those of the notebook. The frame is sandboxed, so that
// nothing in it can reach the notebook but by messages, and only a review is taken from these.
function render({model, el}) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("title", "Review of the classes");
  Object.assign(frame.style, {width: "100%", border: "0"});
  const show = () => {
    frame.style.height = `${model.get("height")}px`;
    frame.srcdoc = model.get("page");
  };
  const hear = event => {
    if (event.source !== frame.contentWindow || !event.data || !event.data.nodenova) return;
    model.set("review", event.data.nodenova);
    model.save_changes();
  };
  addEventListener("message", hear);
  model.on("change:page", show);
  show();
  el.append(frame);
  return () => { removeEventListener("message", hear); model.off("change:page", show); };
}
export default {render};
