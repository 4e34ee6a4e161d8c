// SPDX-License-Identifier: Apache-2.0
// What a study decides, from its answer and the values of the sliders; iocast/study/search.py decides alike.
"use strict";

/** Negative where `a` comes nearer to keeping all levels than `b`: by probability, then by margins from the worst on,
 * then by cost. Probabilities below the plausible one differ by chance alone. */
function byNearness(a, b, plausible) {
  const chance = (one) => (one.probability >= plausible ? one.probability : 0);
  const worstFirst = (one) => [...one.margins].sort((x, y) => x - y);
  const others = worstFirst(b);
  const further = worstFirst(a).map((margin, i) => others[i] - margin).find((difference) => difference) ?? 0;
  return chance(b) - chance(a) || further || a.cost - b.cost || a.number - b.number;
}

/** What a margin of this slider's level is a factor of: the number, or of a share of time its odds; and back. */
const asRatio = (slider, value) => (slider.unit === "share of time" ? value / (1 - value) : value);
const asValue = (slider, ratio) => (slider.unit === "share of time" ? ratio / (1 + ratio) : ratio);

/** The cheapest simulated design within the budget that keeps all levels with the required confidence; of several at
 * that price the one that keeps them surest. `values`: of the desk's sliders, in their order. `unsimulated`: how many
 * designs that the budget ruled out these prices bring within it. */
function decided(desk, values) {
  const shift = {}, prices = [];
  let confidence = 0, levelsTurned = false;
  desk.sliders.forEach((slider, i) => {
    const now = values[i];
    if (slider.kind === "confidence") confidence = now;
    if (slider.kind === "price") prices.push([slider.name, now - slider.value]);
    if (slider.kind !== "level") return;
    const factor = asRatio(slider, now) / asRatio(slider, slider.value);
    shift[slider.name] = Math.log(desk.upper[slider.name] ? factor : 1 / factor);
    levelsTurned ||= now !== slider.value;
  });
  const priced = (one) => one.cost + prices.reduce((sum, [part, more]) => sum + more * (one.parts[part] ?? 0), 0);
  const isWithin = (cost) => cost <= (desk.budget ?? Infinity);
  const designs = desk.designs.map((one) => {
    const cost = priced(one);
    const shifts = one.levels.map((level) => shift[level] ?? 0);
    const kept = one.possible.filter((row) => row.every((margin, i) => margin / 1000 + shifts[i] >= 0));
    return {
      ...one,
      number: Number(one.id.replace(/\D/g, "")),
      cost,
      isWithin: isWithin(cost),
      margins: one.margins.map((margin, i) => (margin ?? 0) * Math.exp(shifts[i])),
      probability: levelsTurned && one.possible.length ? kept.length / one.possible.length : one.probability
    };
  });
  designs.sort((a, b) => a.cost - b.cost || b.probability - a.probability || a.number - b.number);
  const simulated = designs.filter((one) => one.simulated && one.isWithin);
  return {
    designs,
    confidence,
    chosen: simulated.find((one) => one.probability >= confidence),
    nearest: [...simulated].sort((a, b) => byNearness(a, b, desk.plausible))[0],
    unsimulated: desk.unsimulated.filter((one) => isWithin(priced(one))).length,
    draws: levelsTurned ? (simulated[0]?.possible.length ?? 0) : 0
  };
}
