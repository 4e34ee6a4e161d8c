// SPDX-License-Identifier: Apache-2.0
// Sliders of a study: what would be chosen at other limits, prices and another required confidence. Every design keeps
// its samples; nothing is simulated here.
"use strict";

(() => {
  const place = document.getElementById("turn");
  if (!place) return;
  const desk = JSON.parse(document.getElementById("study-desk").textContent);
  const {rate, seconds, bytes, count} = amounts;
  const percent = (value, places = 0) => `${Number((100 * value).toFixed(places))}\u00a0%`;
  const money = (value) => `${count(value)}\u00a0${desk.currency}`.trim();
  const share = (value) => percent(value, 1);
  const written = {rate, seconds, bytes: (value) => `${bytes(value)}/s`, share, "share of time": share};
  const inputs = [...place.querySelectorAll("input[type=range]")];
  const answer = document.getElementById("turn-answer");
  const back = document.getElementById("turn-back");
  const asAsked = inputs.map((one) => one.value);

  /** A slider's number: the confidence as it is, everything else as a factor on its value, or on its odds; a share at
   * most 100 %. */
  function turned(slider, i) {
    if (inputs[i].value === asAsked[i]) return slider.value;
    const place = Number(inputs[i].value);
    if (slider.kind === "confidence") return place;
    const now = Number(asValue(slider, asRatio(slider, slider.value) * desk.span ** place).toPrecision(3));
    return slider.unit === "share" ? Math.min(1, now) : now;
  }
  const text = (slider, i) => (slider.kind === "price" ? money : written[slider.unit])(turned(slider, i));
  const isAsAsked = () => inputs.every((one, i) => one.value === asAsked[i]);

  /** What the study decides where the sliders are. */
  function decidedHere() {
    const values = desk.sliders.map(turned);
    const turnedTo = desk.sliders.flatMap(
        (slider, i) => (inputs[i].value === asAsked[i] ? [] : [`${slider.label} at ${text(slider, i)}`]));
    return {...decided(desk, values), turnedTo};
  }
  function chance(probability, confidence) {
    if (!desk.confident) return "unknown chance";
    if (probability > 0.99 && probability >= confidence) return `more than ${Math.max(99, 100 * confidence)}\u00a0%`;
    if (probability < 0.01) return "less than 1\u00a0%";
    // As many digits as leave it on its side of the required one.
    const isKept = (share) => share >= 100 * confidence;
    const holds = (places) => isKept(Number((100 * probability).toFixed(places))) === isKept(100 * probability);
    return percent(probability, [0, 1, 2].find(holds) ?? 3);
  }
  function sentence({chosen, nearest, confidence, draws, unsimulated, turnedTo}) {
    const condition = turnedTo.length ? `With ${turnedTo.join(", ")}: ` : "";
    const required = ` (required: ${percent(confidence, 1)})`;
    const ruledOut = !unsimulated ? "" :
        ` ${count(unsimulated)} design${unsimulated > 1 ? "s" : ""} that the budget ruled out ${
            unsimulated > 1 ? "come" : "comes"} within it at these prices, and ${
            unsimulated > 1 ? "were" : "was"} not simulated: run the study with them.`;
    const from = draws && desk.confident ? `, from ${draws} samples a design` : "";
    if (chosen) {
      return `${condition}\u201c${chosen.name}\u201d for ${money(chosen.cost)} keeps all levels with ${
          chance(chosen.probability, confidence)}${required}${from}.${ruledOut}`;
    }
    const none = condition ? "no" : "No";
    if (!nearest) {
      const within = `the budget of ${money(desk.budget)}`;
      return `${condition}${none} simulated design stays within ${within}.${ruledOut}`;
    }
    return `${condition}${none} simulated design keeps all levels${required}; the nearest, \u201c${
        nearest.name}\u201d for ${money(nearest.cost)}, does with ${
        chance(nearest.probability, confidence)}${from}.${ruledOut}`;
  }
  /** The rows of the chart with other costs, margins and choice. */
  function charted(now) {
    const by = new Map(now.designs.map((one) => [one.id, one]));
    const rows = figureRows.map((row) => {
      const one = by.get(row.design);
      const state = one === now.chosen ? "the decision" :
          !one.isWithin                ? "beyond the budget" :
          !one.simulated               ? "only screened" :
          one.probability >= now.confidence ? "keeps all levels" :
          Math.min(...one.margins) >= 1     ? "kept, not surely enough" :
                                              "misses a level";
      return {
        ...row,
        cost: one.cost,
        margin: Math.min(...one.margins) || null,  // where a level is not served at all
        state,
        probability: desk.confident ? one.probability : null
      };
    });
    rows.sort((a, b) => a.cost - b.cost);
    for (const [what, best] of [["margin", Math.max], ["rate", Math.max], ["tail", Math.min]]) {
      let reached = null;
      for (const row of rows) {
        if (row[what] !== null) reached = reached === null ? row[what] : best(reached, row[what]);
        row[`best_${what}`] = reached;
      }
    }
    return rows;
  }
  const figureRows = JSON.parse(JSON.stringify(numbers.figures.front?.rows ?? []));  // Vega marks those that it has

  function show() {
    desk.sliders.forEach((slider, i) => {
      inputs[i].setAttribute("aria-valuetext", text(slider, i).replaceAll("\u00a0", " "));
      inputs[i].nextElementSibling.textContent = text(slider, i);
    });
    const now = decidedHere();
    answer.textContent = sentence(now);
    back.disabled = isAsAsked();
    place.classList.toggle("turned", !isAsAsked());
    document.body.dataset.chosen = now.chosen?.id ?? "";
    const rows = isAsAsked() ? figureRows : charted(now);
    for (const view of views.front ?? []) view.data("figure", rows.map((row) => ({...row}))).runAsync();
  }
  for (const input of inputs) input.addEventListener("input", show);
  back.addEventListener("click", () => {
    inputs.forEach((one, i) => { one.value = asAsked[i]; });
    show();
    inputs[0].focus();
  });
  place.hidden = false;
  everythingDrawn.then(show);
})();
