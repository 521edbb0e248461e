"use strict";
// The last script: everything is there, so that it can be shown.

for (const watcher of watchers) watcher();
