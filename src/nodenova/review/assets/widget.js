"use strict";
// In a notebook: what is decided goes to the cell around this page at once, and is applied from there.

watchers.push(() => parent.postMessage({nodenova: {...story.review, decisions}}, "*"));
watchers.push(() => { saved = decisions.length; });  // nothing is lost by closing it
$("save").hidden = true;
say("Decisions are in widget.decisions; run.apply(widget.decisions) makes them part of the run.");
