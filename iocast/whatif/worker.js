// SPDX-License-Identifier: Apache-2.0
// Runs simulations beside the page, one after the other; comes after the script that emscripten makes.
"use strict";

const EVENTS = 20000;       // between two looks at the progress
const FIRST_SHARE = 0.02;   // of the simulation, after which its rate so far is a first answer
const MILLISECONDS = 200;   // between two reports, and until the first one at the latest
let module = null;

/** Calls a function of page/module.cpp, which takes and gives JSON. */
function call(name, argument) {
  return JSON.parse(module.ccall(name, "string", [typeof argument === "number" ? "number" : "string"], [argument]));
}

function write(files) {
  for (const [path, text] of Object.entries(files)) {
    module.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    module.FS.writeFile(path, text);
  }
}

/** Settings with so few iterations that the workload has at most `most` operations, and what that is of the whole. */
function begin(request, most) {
  let begun = call("iocast_begin", JSON.stringify(request));
  const length = request.length;
  if (begun.error || !length || begun.operations <= most || length.value <= 1) return [begun, 1];
  const value = Math.max(1, Math.floor(length.value * most / begun.operations));
  const settings = [...request.settings, `${length.name}=${value}`];
  begun = call("iocast_begin", JSON.stringify({...request, settings}));
  return [begun, value / length.value];
}

function simulate({id, files, request, most}) {
  write(files);
  const [begun, share] = begin(request, most);
  if (begun.error) return postMessage({id, error: begun.error});
  let reported = performance.now(), first = true;
  for (;;) {
    const step = call("iocast_step", EVENTS);
    if (step.error) return postMessage({id, error: step.error});
    if (step.done !== false) return postMessage({id, run: step, share});
    const now = performance.now();
    if (now - reported < MILLISECONDS && !(first && step.share >= FIRST_SHARE)) continue;
    postMessage({id, progress: step.share, rate: step.rate});
    [reported, first] = [now, false];
  }
}

onmessage = async ({data}) => {
  if (!data.program) return simulate(data);
  const instantiateWasm = (imports, receive) => {
    WebAssembly.instantiate(data.program, imports).then((instance) => receive(instance, data.program));
    return {};
  };
  module = await iocastModule({instantiateWasm, print : () => {}, printErr : () => {}});
  for (const directory of ["platforms", "workload/catalogue"]) module.FS.mkdirTree(`/iocast/${directory}`);
  write(data.files);
  postMessage({ready: true});
};
