// SPDX-License-Identifier: Apache-2.0
// Finds sections that have all words of the query; those with the words in their title come first.
const query = document.getElementById("query");
const found = document.getElementById("found");

function score([, title, text], words) {
  const head = title.toLowerCase(), body = text.toLowerCase();
  if (!words.every((word) => head.includes(word) || body.includes(word))) return 0;
  const points = (word) => (head.includes(word) ? 100 : 1) + body.split(word).length / (50 + body.length / 50);
  return words.reduce((sum, word) => sum + points(word), 0);
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
  return (at ? "..." : "") + text.slice(at, at + 180) + (at + 180 < text.length ? "..." : "");
}

query.addEventListener("input", () => {
  const words = query.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  found.hidden = !words.length;
  found.replaceChildren();
  if (!words.length) return;
  const scored = sections.map((section) => [score(section, words), section]).filter(([points]) => points);
  const best = scored.sort((a, b) => b[0] - a[0]).slice(0, 20);
  const made = (tag, content) => Object.assign(document.createElement(tag), content);
  if (!best.length) found.append(made("p", { textContent: "Nothing has all of these words." }));
  for (const [, [address, title, text]] of best) {
    const link = made("a", { href: document.body.dataset.root + "/" + address, textContent: title });
    const entry = document.createElement("p");
    entry.append(link, made("small", { textContent: excerpt(text, words[0]) }));
    found.append(entry);
  }
  window.scrollTo(0, 0);
});
