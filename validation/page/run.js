// SPDX-License-Identifier: Apache-2.0
// Runs requests, JSON on standard input, by the module in a directory; prints each result on a line.
"use strict";
const fs = require("fs");
const directory = process.argv[2];
const { files, requests } = JSON.parse(fs.readFileSync(0));
const wasmBinary = fs.readFileSync(`${directory}/iocast-page.wasm`);
require(`${directory}/iocast-page.js`)({ wasmBinary }).then((module) => {
  const call = (name, kind, argument) => JSON.parse(module.ccall(name, "string", [kind], [argument]));
  for (const [path, text] of Object.entries(files)) {
    module.FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
    module.FS.writeFile(path, text);
  }
  for (const request of requests) {
    const before = process.cpuUsage().user;
    let step = call("iocast_begin", "string", JSON.stringify(request));
    if (!step.error) do step = call("iocast_step", "number", 200000); while (step.done === false);
    console.log(JSON.stringify({ step, seconds: (process.cpuUsage().user - before) / 1e6 }));
  }
});
