// SPDX-License-Identifier: Apache-2.0
// Runs requests by the module. In node: `node run.js DIRECTORY`, JSON on standard input, a line for each result. In a
// page of a browser: what stands in the field "request" when it changes; the result is then in the field "result".
"use strict";

function answers(module, {files, requests}) {
  const call = (name, kind, argument) => JSON.parse(module.ccall(name, "string", [kind], [argument]));
  for (const [path, text] of Object.entries(files)) {
    module.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    module.FS.writeFile(path, text);
  }
  return requests.map((request) => {
    let step = call("iocast_begin", "string", JSON.stringify(request));
    if (!step.error) do step = call("iocast_step", "number", 200000); while (step.done === false);
    return step;
  });
}

if (typeof window === "undefined") {
  const fs = require("fs");
  const directory = process.argv[2];
  const wasmBinary = fs.readFileSync(`${directory}/iocast-page.wasm`);
  require(`${directory}/iocast-page.js`)({wasmBinary}).then((module) => {
    for (const line of fs.readFileSync(0, "utf8").split("\n").filter((one) => one)) {
      const before = process.cpuUsage().user;
      const [step] = answers(module, JSON.parse(line));
      console.log(JSON.stringify({step, seconds: (process.cpuUsage().user - before) / 1e6}));
    }
  });
} else {
  const field = (id) => document.getElementById(id);
  const wasmBinary = Uint8Array.from(atob(field("module").textContent.trim()), (c) => c.charCodeAt(0));
  iocastModule({wasmBinary}).then((module) => {
    field("request").addEventListener("change", () => {
      try {
        field("result").value = JSON.stringify(answers(module, JSON.parse(field("request").value))[0]);
      } catch (error) {
        field("result").value = JSON.stringify({error: String(error)});
      }
    });
    document.body.dataset.ready = "yes";
  });
}
