// SPDX-License-Identifier: Apache-2.0
// The controls of a page and the answers to them: estimates from what the page holds, and simulations by the module.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("whatif-data").textContent);
  const place = document.getElementById("whatif");
  const MAX_OPERATIONS = 200000;               // of one simulation; longer workloads are simulated for fewer iterations
  const NUMBER_OF_SCALES = [0.25, 0.5, 2, 4];  // times the requested nodes, for the curve
  const NEARLY_FULL = 0.9;

  // --- words and numbers

  const {digits, rate, seconds, bytes, count, percent} = amounts;

  const SCALES = {
    "": 1,
    n: 1e-9,
    u: 1e-6,
    m: 1e-3,
    k: 1e3,
    M: 1e6,
    G: 1e9,
    T: 1e12,
    Ki: 2 ** 10,
    Mi: 2 ** 20,
    Gi: 2 ** 30,
    Ti: 2 ** 40
  };
  /** A number with its unit in SI units; NaN for what is none. */
  function parsed(text, unit) {
    const found = /^\s*([-+0-9.]+(?:e[-+]?[0-9]+)?)\s*([a-zA-Z/]*)\s*$/i.exec(text);
    if (!found) return NaN;
    const written = found[2];
    if (written === "") return Number(found[1]);
    const prefix =
        unit && unit !== "factor" && written.endsWith(unit) ? written.slice(0, written.length - unit.length) : null;
    return prefix !== null && prefix in SCALES ? Number(found[1]) * SCALES[prefix] : NaN;
  }
  function shown(value, unit) {
    if (unit === "s") return seconds(value).replace("\u00a0", "");
    if (unit === "B") return bytes(value).replace("\u00a0", "");
    if (unit === "B/s") return `${bytes(value).replace("\u00a0", "")}/s`;
    if (unit === "/s") return `${Number(value.toPrecision(4))}/s`;
    return unit === "" ? String(Math.round(value)) : String(Number(value.toPrecision(4)));
  }

  // --- parts of the page

  function element(name, attributes = {}, ...children) {
    const one = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    one.append(...children);
    return one;
  }
  const SVG = "http://www.w3.org/2000/svg";
  function drawn(name, attributes, text) {
    const one = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    return one;
  }

  // --- the setting: what differs from "as measured"

  const controls = new Map(data.controls.map((one) => [one.path, one]));
  const setting = new Map();
  const prices = new Map();
  const value = (path) => setting.get(path) ?? controls.get(path)?.value;

  function hash() {
    const words = [...setting].map(([path, number]) => `${encodeURIComponent(path)}=${number}`);
    words.push(...[...prices].map(([path, number]) => `price:${encodeURIComponent(path)}=${number}`));
    return words.length ? `#set:${words.join("&")}` : "#whatif";
  }
  function readHash() {
    setting.clear();
    prices.clear();
    const found = /^#set:(.*)$/.exec(location.hash);
    for (const word of found ? found[1].split("&") : []) {
      const priced = word.startsWith("price:");
      const [path, text] = word.slice(priced ? 6 : 0).split("=").map(decodeURIComponent);
      const number = Number(text);
      if (!controls.has(path) || !Number.isFinite(number) || number < 0) continue;
      if (priced)
        prices.set(path, number);
      else if (number !== controls.get(path).value)
        setting.set(path, number);
    }
  }

  /** The request of a simulation. Numbers of the platform are a file of their own upon it, as --edit makes one. */
  function request(changed, nodes, draw) {
    const base = draw === undefined ? data.platform : `/here/draw-${draw}.yaml`;
    const files = {};
    let platform = base;
    const overlay = {schema_version: 1, extends: base};
    const settings = {...data.settings};
    for (const [path, number] of changed) {
      const control = controls.get(path);
      const text =
          control.unit === "" ? String(Math.round(number)) : number + (control.unit === "factor" ? "" : control.unit);
      if (control.kind === "setting") settings[path] = text;
      if (control.kind !== "platform") continue;
      platform = "/here/what-if.yaml";
      let at = overlay;
      control.keys.forEach((key, i) => {
        if (i === control.keys.length - 1)
          at[key] = text;
        else
          at = at[key] ??= {};
      });
    }
    if (platform !== base) files[platform] = JSON.stringify(overlay);
    const length =
        data.length && {name: data.length, value: Number(settings[data.length] ?? controls.get(data.length)?.value)};
    return {
      files,
      most: MAX_OPERATIONS,
      request: {
        platform,
        workload: data.workload,
        nodes: Math.max(1, Math.round(nodes)),
        ranks_per_node: Math.round(changed.get("ranks_per_node") ?? controls.get("ranks_per_node").value),
        seed: data.seed,
        settings: Object.entries(settings).map(([name, text]) => `${name}=${text}`),
        length
      }
    };
  }

  // --- the module, in a worker

  let program = null, glue = null, worker = null, starting = null, waiting = null, number = 0;
  const answers = new Map();

  /** What a script element holds gzipped, in base64. */
  function unpacked(id) {
    const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
  }
  /** Starts the worker; once, whoever waits for it. */
  const ready = () => (starting ??= start());
  async function start() {
    program ??= await WebAssembly.compile(await unpacked("whatif-module").arrayBuffer());
    glue ??= await unpacked("whatif-glue").text();
    const own = JSON.parse(document.getElementById("whatif-worker").textContent);
    const address = URL.createObjectURL(new Blob([glue, own], {type: "text/javascript"}));
    worker = new Worker(address);
    await new Promise((done, failed) => {
      worker.onmessage = done;
      worker.onerror = failed;
      worker.postMessage({program, files: data.files});
    });
    URL.revokeObjectURL(address);
  }
  /** Ends what is being simulated: nobody waits for it any more. */
  function stop() {
    if (waiting === null) return;
    worker.terminate();
    worker = starting = null;
    waiting.failed(new Error("stopped"));
    waiting = null;
  }
  async function simulated(wanted, progress) {
    const key = JSON.stringify(wanted);
    if (answers.has(key)) return answers.get(key);
    const mine = question;
    await ready();
    if (mine !== question) throw new Error("stopped");
    const id = ++number;
    const answer = await new Promise((done, failed) => {
      waiting = {failed};
      worker.onerror = (event) => failed(new Error(event.message));
      worker.onmessage = ({data: got}) => {
        if (got.id !== id) return;
        if (got.progress !== undefined)
          progress(got.progress, got.rate);
        else {
          waiting = null;
          done(got);
        }
      };
      worker.postMessage({id, ...wanted});
    });
    answers.set(key, answer);
    return answer;
  }

  // --- what a run says

  function phaseOf(run) {
    const named = run.phases.filter((one) => one.name === data.phase);
    return named[named.length - 1] ?? run.phases.reduce((a, b) => (b.operations > a.operations ? b : a));
  }
  const PARTS = [
    ["service", "being served at"], ["wait", "waiting for"], ["lock_wait", "waiting for a lock at"],
    ["stall", "in stalls of"], ["lost", "lost in failures of"]
  ];
  /** What limits the rate, from the stations of a phase and the time of its operations. */
  function limits(phase) {
    const stations = Object.entries(phase.stations).filter(([, one]) => one.visits > 0);
    const busiest = stations.reduce((a, b) => (a && a[1].utilisation >= b[1].utilisation ? a : b), null);
    if (busiest && busiest[1].utilisation >= NEARLY_FULL) {
      return `${busiest[0]} limits the rate: its servers are used ${percent(Math.min(1, busiest[1].utilisation))}.`;
    }
    let largest = [0, ""], known = 0;
    for (const [name, one] of stations) {
      for (const [part, words] of PARTS) {
        const time = Object.entries(one.operations)
                         .filter(([op]) => op !== "others" && op !== "drain")
                         .reduce((sum, [, op]) => sum + op.visits * (op[part] ?? 0), 0);
        known += time;
        if (time > largest[0]) largest = [time, `${words} ${name}`];
      }
    }
    const whole = Math.max(phase.responding_seconds, known);
    if (whole - known > largest[0])
      largest = [whole - known, "outside of all stations: network, devices and clients' limits"];
    const [name, used] = busiest ? [busiest[0], busiest[1].utilisation] : ["", 0];
    const which = used >= 0.01 ? `: the busiest, ${name}, is used ${percent(used)}` : "";
    const full = `No station is full${which}. `;
    return largest[0] > 0 ? `${full}Operations spend ${percent(largest[0] / whole)} of their time ${largest[1]}.` :
                            full;
  }

  // --- figures

  const WIDE = 620, HIGH = 330, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 44;
  function ticks(low, high) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power) {
      for (const digit of high / low < 30 ? [1, 2, 5] : [1]) {
        const at = digit * 10 ** power;
        if (at >= low * 0.999 && at <= high * 1.001) found.push(at);
      }
    }
    return found;
  }
  function axis(values, from, to) {
    let low = Math.min(...values), high = Math.max(...values);
    if (high / low < 3) {
      const middle = Math.sqrt(low * high);
      low = middle / 2;
      high = middle * 2;
    }
    low /= 1.15;
    high *= 1.15;
    const at = (one) => from + (to - from) * Math.log(one / low) / Math.log(high / low);
    return {at, ticks: ticks(low, high)};
  }
  const MARKS = {
    measured: (x, y) => drawn("circle", {cx: x, cy: y, r: 5, class: "measured"}),
    forecast: (x, y) =>
        drawn("path", {d: `M${x} ${y - 7} ${x + 6} ${y} ${x} ${y + 7} ${x - 6} ${y}Z`, class: "forecast"}),
    rule: (x, y) =>
        drawn("path", {d: `M${x - 4} ${y - 4} ${x + 4} ${y + 4} M${x - 4} ${y + 4} ${x + 4} ${y - 4}`, class: "rule"}),
    estimate: (x, y) => drawn("circle", {cx: x, cy: y, r: 6, class: "estimate"}),
    "as it is": (x, y) => drawn("rect", {x: x - 4, y: y - 4, width: 8, height: 8, class: "before"}),
    "this setting": (x, y) => drawn("rect", {x: x - 5, y: y - 5, width: 10, height: 10, class: "now"}),
  };
  /** @param series by name, in the order of MARKS: points of ranks, rate, and perhaps low and high */
  function figure(series) {
    const points = Object.values(series).flat();
    const svg = drawn("svg", {
      viewBox: `0 0 ${WIDE} ${HIGH}`,
      role: "img",
      "aria-label": "Rate against ranks, both on logarithmic scales; the numbers are in the table below"
    });
    if (!points.length) return svg;
    const x = axis(points.map((one) => one.ranks), LEFT, WIDE - RIGHT);
    const y = axis(points.flatMap((one) => [one.rate, one.low ?? one.rate, one.high ?? one.rate]), HIGH - BOTTOM, TOP);
    for (const tick of x.ticks) {
      svg.append(
          drawn("line", {x1: x.at(tick), x2: x.at(tick), y1: TOP, y2: HIGH - BOTTOM, class: "grid"}),
          drawn("text", {x: x.at(tick), y: HIGH - BOTTOM + 17, "text-anchor": "middle"}, count(tick)));
    }
    for (const tick of y.ticks) {
      svg.append(
          drawn("line", {x1: LEFT, x2: WIDE - RIGHT, y1: y.at(tick), y2: y.at(tick), class: "grid"}),
          drawn("text", {x: LEFT - 6, y: y.at(tick) + 4, "text-anchor": "end"}, rate(tick)));
    }
    svg.append(drawn("text", {x: (LEFT + WIDE) / 2, y: HIGH - 6, "text-anchor": "middle"}, "ranks"));
    for (const [name, of] of Object.entries(series)) {
      const sorted = [...of].sort((a, b) => a.ranks - b.ranks);
      if (["as it is", "this setting"].includes(name) && sorted.length > 1) {
        svg.append(drawn("polyline", {
          points: sorted.map((one) => `${x.at(one.ranks)},${y.at(one.rate)}`).join(" "),
          class: name === "this setting" ? "now line" : "before line"
        }));
      }
      for (const one of sorted) {
        if (one.low)
          svg.append(drawn(
              "line",
              {x1: x.at(one.ranks), x2: x.at(one.ranks), y1: y.at(one.low), y2: y.at(one.high), class: "interval"}));
        svg.append(MARKS[name](x.at(one.ranks), y.at(one.rate)));
      }
    }
    return svg;
  }
  function legend(series) {
    const list = element("ul", {class: "whatif-legend"});
    for (const name of Object.keys(series).filter((one) => series[one].length)) {
      const mark = drawn("svg", {width: 18, height: 16, "aria-hidden": "true"});
      mark.append(MARKS[name](9, 8));
      list.append(element("li", {}, mark, ` ${name}`));
    }
    return list;
  }
  const QUANTILES = ["min", "q25", "q50", "q75", "q95", "q99", "q999", "max"];
  function tableOf(header, rows) {
    return element(
        "table", {},
        element("thead", {}, element("tr", {}, ...header.map((one) => element("th", {scope: "col"}, one)))),
        element(
            "tbody", {},
            ...rows.map(
                (row) => element(
                    "tr", {}, element("th", {scope: "row"}, row[0]),
                    ...row.slice(1).map((one) => element("td", {}, one))))));
  }
  /**
   * Each operation's times: a line from the least to the largest, a box of the middle half, ticks at q95, q99 and
   * q99.9.
   */
  function distributions(latency) {
    const kinds = Object.entries(latency).filter(([name, one]) => !name.includes(".") && one.count > 0);
    const times = kinds.flatMap(([, one]) => [one.min, one.max]).filter((one) => one > 0);
    if (!times.length) return drawn("svg", {});
    const high = kinds.length * 30 + 34;
    const svg = drawn("svg", {
      viewBox: `0 0 ${WIDE} ${high}`,
      role: "img",
      "aria-label": "Times of each operation from the least to the largest; the numbers are in the table below"
    });
    const x = axis(times, LEFT + 20, WIDE - RIGHT);
    for (const tick of x.ticks)
      svg.append(
          drawn("line", {x1: x.at(tick), x2: x.at(tick), y1: 0, y2: high - 28, class: "grid"}),
          drawn("text", {x: x.at(tick), y: high - 10, "text-anchor": "middle"}, seconds(tick)));
    kinds.forEach(([name, one], row) => {
      const y = row * 30 + 16;
      svg.append(
          drawn("text", {x: LEFT + 10, y: y + 4, "text-anchor": "end"}, name),
          drawn("line", {x1: x.at(one.min || times[0]), x2: x.at(one.max), y1: y, y2: y, class: "whisker"}),
          drawn("rect", {
            x: x.at(one.q25),
            width: Math.max(1, x.at(one.q75) - x.at(one.q25)),
            y: y - 7,
            height: 14,
            class: "box"
          }));
      for (const mark of ["q50", "q95", "q99", "q999"]) {
        svg.append(drawn("line", {x1: x.at(one[mark]), x2: x.at(one[mark]), y1: y - 7, y2: y + 7, class: "tick"}));
      }
    });
    return svg;
  }

  // --- controls

  const inputs = new Map();
  function slider(control) {
    const low = control.least || control.most / 4096, zero = control.least === 0;
    const to = (one) => (zero ? one / control.most : Math.log(one / low) / Math.log(control.most / low));
    const from = (share) => (zero ? share * control.most : low * (control.most / low) ** share);
    const bar =
        element("input", {type: "range", min: 0, max: 1, step: 0.005, "aria-label": `${control.label}, slider`});
    return {
      bar,
      set: (one) => {
        bar.value = String(Math.min(1, Math.max(0, to(Math.max(one, zero ? 0 : low)))));
      },
      get: () => {
        const one = from(Number(bar.value));
        return control.unit === "" ? Math.round(one) : Number(one.toPrecision(3));
      }
    };
  }
  function row(control) {
    const id = `control-${[...controls.keys()].indexOf(control.path)}`;
    const box = element(
        "input", {id, type: "text", inputmode: "decimal", autocomplete: "off", "aria-describedby": `${id}-about`});
    const about = element("p", {id: `${id}-about`, class: "about"}, control.idle || control.meaning);
    const label = element("label", { for: id
    }, control.label);
    const whole = element("div", {class: "control"}, label, box);
    if (control.idle) {
      box.disabled = true;
      box.value = shown(control.value, control.unit);
      whole.append(about);
      return whole;
    }
    const sliding = slider(control);
    const set = (one, from) => {
      if (!(one >= 0) || (control.unit === "" && one < 1) || (control.kind !== "setting" && one <= 0)) {
        box.setAttribute("aria-invalid", "true");
        about.textContent = `Write a number${
            control.unit && control.unit !== "factor" ?
                ` with its unit, such as ${shown(control.value, control.unit)}` :
                ""}.`;
        return;
      }
      box.removeAttribute("aria-invalid");
      about.textContent = control.meaning;
      if (Math.abs(one / control.value - 1) < 1e-9 || one === control.value)
        setting.delete(control.path);
      else
        setting.set(control.path, one);
      if (from !== box) box.value = shown(one, control.unit);
      if (from !== sliding.bar) sliding.set(one);
      changed();
    };
    box.addEventListener("change", () => set(parsed(box.value, control.unit), box));
    sliding.bar.addEventListener("input", () => set(sliding.get(), sliding.bar));
    inputs.set(control.path, () => {
      box.value = shown(value(control.path), control.unit);
      sliding.set(value(control.path));
      box.removeAttribute("aria-invalid");
    });
    whole.append(sliding.bar);
    if (control.kind === "platform" && control.unit === "" && control.first) {
      const price = element("input", {
        type: "text",
        inputmode: "decimal",
        class: "price",
        "aria-label": `price of one more of ${control.label}`,
        placeholder: "price"
      });
      price.addEventListener("change", () => {
        const one = Number(price.value);
        if (price.value.trim() === "" || !(one >= 0))
          prices.delete(control.path);
        else
          prices.set(control.path, one);
        showChanges();
      });
      const before = inputs.get(control.path);
      inputs.set(control.path, () => {
        before();
        price.value = prices.has(control.path) ? String(prices.get(control.path)) : "";
      });
      whole.append(price);
    }
    whole.append(about);
    return whole;
  }
  const parts = {};
  function build() {
    const form = element("form", {class: "whatif-controls", "aria-label": "Setting"});
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(...data.controls.filter((one) => one.first).map(row));
    const others = data.controls.filter((one) => !one.first);
    if (others.length)
      form.append(element("details", {}, element("summary", {}, `${others.length} more`), ...others.map(row)));
    parts.reset = element("button", {type: "button"}, data.as_it_is);
    parts.reset.addEventListener("click", () => {
      setting.clear();
      show();
    });
    parts.link = element("a", {}, "link to this setting");
    form.append(element("p", {class: "whatif-actions"}, parts.reset, " ", parts.link));
    parts.answer = element("p", {class: "whatif-answer", role: "status", "aria-live": "polite"});
    parts.limit = element("p", {});
    parts.cost = element("p", {});
    parts.changes = element("p", {class: "about"});
    parts.notes = element("ul", {class: "whatif-notes"});
    parts.figure = element("div", {class: "whatif-figure"});
    parts.progress = element("progress", {max: 1, value: 0, "aria-label": "simulation"});
    parts.state = element("span", {class: "about"});
    parts.times = element("div", {});
    parts.table =
        element("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Numbers of the figures"});
    place.append(element(
        "div", {class: "whatif"}, form,
        element(
            "div", {class: "whatif-answers"}, parts.answer, parts.changes, parts.limit, parts.cost,
            element("p", {class: "whatif-state"}, parts.progress, " ", parts.state), parts.figure, parts.times,
            parts.notes, element("details", {}, element("summary", {}, "Numbers"), parts.table))));
  }
  function showChanges() {
    parts.link.setAttribute("href", hash());
    const written = [...setting].map(([path, one]) => {
      const {label, unit, value: before} = controls.get(path);
      return `${label} ${shown(one, unit)} instead of ${shown(before, unit)}`;
    });
    parts.changes.textContent = written.length ? `Changed: ${written.join("; ")}.` : "";
    const costs = [...prices].map(([path, one]) => one * (value(path) - controls.get(path).value));
    parts.cost.textContent = costs.length ? `Cost of the change: ${count(costs.reduce((a, b) => a + b, 0))}.` : "";
  }

  // --- from a setting to its answer

  const known = {measured: data.measured, forecast: data.forecasts, rule: data.rules};
  let series = {}, question = 0;

  const t = (one) => (one ? Math.log(one) : 0);
  /**
   * What the calibration corrects a simulated rate by at a scale, and its interval's ends over the value, between the
   * forecasts.
   */
  function correction(ranks) {
    const at = data.forecasts.filter((one) => one.model && one.rate).sort((a, b) => a.ranks - b.ranks);
    if (!at.length) return {shift: 1, low: null, high: null};
    const i = at.findIndex((one) => one.ranks >= ranks);
    const [a, b] = i < 0 ? [at[at.length - 1], at[at.length - 1]] : [at[Math.max(0, i - 1)], at[i]];
    const share = a === b || a.ranks === b.ranks ?
        0 :
        Math.min(1, Math.max(0, (t(ranks) - t(a.ranks)) / (t(b.ranks) - t(a.ranks))));
    const between = (of) => Math.exp((1 - share) * Math.log(of(a)) + share * Math.log(of(b)));
    const ends = [a, b].every((one) => one.low);
    return {
      shift: between((one) => one.rate / one.model),
      low: ends ? between((one) => one.low / one.rate) : null,
      high: ends ? between((one) => one.high / one.rate) : null
    };
  }
  /** The interval: that of the forecasts, widened by how differently the draws answer to the change. */
  function forecastOf(rateOf, ranks, ratios) {
    const {shift, low, high} = correction(ranks);
    const now = {ranks, rate: rateOf * shift};
    if (low === null) return now;
    const logs = ratios.map(Math.log).sort((a, b) => a - b);
    const quantile = (p) =>
        (logs.length ? logs[Math.min(logs.length - 1, Math.max(0, Math.round(p * (logs.length - 1))))] : 0);
    now.low = now.rate * Math.exp(-Math.hypot(Math.log(low), Math.min(0, quantile(0.05))));
    now.high = now.rate * Math.exp(Math.hypot(Math.log(high), Math.max(0, quantile(0.95))));
    return now;
  }
  function redraw() {
    parts.figure.replaceChildren(legend(series), figure(series));
    const rows = Object.entries(series).flatMap(
        ([name, of]) => of.map(
            (one) =>
                [name, count(one.ranks), rate(one.rate), one.low ? `${rate(one.low)} to ${rate(one.high)}` : "–"]));
    parts.table.replaceChildren(tableOf(["what", "ranks", "rate", "interval"], rows));
    if (parts.run) {
      const kinds = Object.entries(parts.run.latency).filter(([, one]) => one.count > 0);
      parts.table.append(tableOf(
          ["operation", "count", "mean", ...QUANTILES],
          kinds.map(
              ([name, one]) => [name, count(one.count), seconds(one.mean), ...QUANTILES.map((q) => seconds(one[q]))])));
    }
  }
  function notes(run, share) {
    const all = [...data.notes, ...(run ? run.warnings : [])];
    if (share < 1) all.push(`Simulated for ${percent(share)} of the workload's ${data.length}.`);
    parts.notes.replaceChildren(...[...new Set(all)].map((one) => element("li", {}, one)));
  }
  function say(now, before, note) {
    document.body.dataset.firstAnswer ??= String(performance.now() - began);
    const times = before ? `, ${digits(now.rate / before)} times “${data.as_it_is.toLowerCase()}”` : "";
    const ends = now.low ? `${rate(now.low)} to ${rate(now.high)}, ${data.level} interval` : "";
    const inside = [ends, note].filter((one) => one).join("; ");
    const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
    const place = `${several(value("nodes"), "node")} with ${several(value("ranks_per_node"), "rank")} each`;
    parts.answer.textContent = `${rate(now.rate)}${inside && ` (${inside})`}${times} on ${place}.`;
  }
  let timer = null, began = performance.now();
  function changed() {
    began = performance.now();
    delete document.body.dataset.firstAnswer;
    showChanges();
    clearTimeout(timer);
    timer = setTimeout(answer, 60);
  }
  function progress(words) {
    return (share) => {
      parts.progress.value = share;
      parts.state.textContent = words;
    };
  }
  async function answer() {
    const mine = ++question;
    stop();
    document.body.dataset.whatif = "busy";
    const now = new Map(setting), nodes = value("nodes"),
          ranks = Math.round(nodes) * Math.round(value("ranks_per_node"));
    const edited = [...now.keys()].some((path) => controls.get(path).kind !== "place");
    const onPlace = new Map([...now].filter(([path]) => controls.get(path).kind === "place"));
    series = {...known, "as it is": [], "this setting": []};
    const isKnown = estimate(ranks, edited);
    redraw();
    parts.progress.hidden = false;
    try {
      const simulating = progress("simulating");
      const got = await simulated(request(now, nodes), (share, soFar) => {
        simulating(share);
        if (mine === question && !isKnown && soFar) approximate(ranks, share, soFar);
      });
      if (mine !== question) return;
      if (got.error) {
        parts.answer.textContent =
            got.error.message.replaceAll("/here/what-if.yaml", "This setting").replaceAll("/here/", "");
        parts.limit.textContent = "";
        return;
      }
      const phase = phaseOf(got.run);
      parts.run = phase;
      let point = forecastOf(phase.rate, ranks, []), before = null;
      series.estimate = [];
      const tell = (note) => {
        say(point, before && before.rate, note);
        series["this setting"] = [...series["this setting"].filter((one) => one.ranks !== ranks), point];
        redraw();
      };
      tell(data.draws ? "without the draws yet" : "");
      parts.limit.textContent = limits(phase);
      parts.times.replaceChildren(distributions(phase.latency));
      notes(got.run, got.share);
      document.body.dataset.whatif = "answered";
      document.body.dataset.rate = String(phase.rate);
      if (edited) {
        const plain = await simulated(request(onPlace, nodes), progress("simulating it as it is"));
        if (mine !== question || plain.error) return;
        before = forecastOf(phaseOf(plain.run).rate, ranks, []);
        series["as it is"] = [before];
        tell(data.draws ? "without the draws yet" : "");
        const ratios = [];
        for (let draw = 0; draw < data.draws; ++draw) {
          const both = [];
          for (const which of [now, onPlace]) {
            both.push(
                await simulated(request(which, nodes, draw), progress(`simulating draw ${draw + 1} of ${data.draws}`)));
            if (mine !== question) return;
          }
          if (both.some((one) => one.error)) continue;
          ratios.push(phaseOf(both[0].run).rate / phaseOf(both[1].run).rate / (phase.rate / phaseOf(plain.run).rate));
          point = forecastOf(phase.rate, ranks, ratios);
          tell(draw + 1 < data.draws ? `${draw + 1} of ${data.draws} draws` : "");
        }
        if (data.draws) tell("");
      } else
        tell("");
      for (const times of NUMBER_OF_SCALES) {
        const scale = Math.round(nodes * times);
        if (scale < 1 || scale === Math.round(nodes)) continue;
        for (const [name, which] of [["this setting", now], ...(edited ? [["as it is", onPlace]] : [])]) {
          const there = await simulated(request(which, scale), progress(`simulating ${count(scale)} nodes`));
          if (mine !== question) return;
          if (there.error) continue;
          const many = scale * Math.round(value("ranks_per_node"));
          series[name].push(forecastOf(phaseOf(there.run).rate, many, []));
          redraw();
        }
      }
    } catch (error) {
      if (error.message !== "stopped") {
        parts.state.textContent = `The simulator does not run in this browser: ${error.message}.`;
        document.body.dataset.whatif = "failed";
      }
      return;
    } finally {
      if (mine === question) {
        parts.progress.hidden = true;
        if (document.body.dataset.whatif !== "failed") {
          parts.state.textContent = "";
          document.body.dataset.whatif = "done";
        }
      }
    }
  }
  /** The first answer to a change: the rate of the simulation so far. */
  function approximate(ranks, share, soFar) {
    series.estimate = [forecastOf(soFar, ranks, [])];
    say(series.estimate[0], null, `a first approximation, from ${percent(share)} of the simulation`);
    redraw();
  }
  /**
   * The first answer, at once, where nothing but the scale differs: between the forecasts that the page holds.
   * @return whether there is one
   */
  function estimate(ranks, edited) {
    const at = data.forecasts.filter((one) => one.rate).sort((a, b) => a.ranks - b.ranks);
    const i = at.findIndex((one) => one.ranks >= ranks);
    if (edited || i < 0 || (i === 0 && at[0].ranks !== ranks)) {
      parts.answer.textContent = "Simulating …";
      return false;
    }
    const [a, b] = [at[Math.max(0, i - 1)], at[i]];
    const share = a.ranks === b.ranks ? 1 : (t(ranks) - t(a.ranks)) / (t(b.ranks) - t(a.ranks));
    const between = (key) =>
        (a[key] && b[key] ? Math.exp((1 - share) * Math.log(a[key]) + share * Math.log(b[key])) : undefined);
    const one = {ranks, rate: between("rate"), low: between("low"), high: between("high")};
    series.estimate = [one];
    say(one, null, share === 1 ? "" : "interpolated between the forecasts of this page");
    return true;
  }
  function show() {
    for (const set of inputs.values()) set();
    changed();
  }
  addEventListener("hashchange", () => {
    if (/^#(set:|whatif$)/.test(location.hash)) {
      readHash();
      show();
    }
  });
  build();
  readHash();
  show();
})();
