// SPDX-License-Identifier: Apache-2.0
// Numbers as pages write them: three digits, with their units.
"use strict";

const amounts = (() => {
  function digits(value) {
    if (!Number.isFinite(value) || value === 0) return "0";
    const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3))))));
    return value.toFixed(Math.min(places, 12));
  }
  function scaled(value, steps) {
    const [factor, unit] = steps.find(([one]) => Math.abs(value) / one >= 0.9995) ?? steps[steps.length - 1];
    return `${digits(value / factor)}\u00a0${unit}`;
  }
  const rate = (value) => scaled(value, [[1e9, "G/s"], [1e6, "M/s"], [1e3, "k/s"], [1, "/s"]]);
  const seconds = (value) =>
      (value === 0 ? "0\u00a0s" : scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]));
  const bytes = (value) => scaled(value, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);
  const count = (value) => Math.round(value).toLocaleString("en");
  const percent = (value) => `${digits(100 * value)}\u00a0%`;
  return {digits, rate, seconds, bytes, count, percent};
})();
