"use strict";
// What scripts add to a page that is complete without them. Names come from recordings, which
// may be hostile: all text is set as text, never as markup.

const all = (query, root = document) => [...root.querySelectorAll(query)];

const make = (name, attributes = {}, text = "") => {
  const element = document.createElement(name);
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  element.textContent = text;
  return element;
};

// Folds: a link into a fold opens it.
const showTarget = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
};

const setFolds = () => {
  addEventListener("hashchange", showTarget);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) showTarget();
  });
  all("[data-folds]").forEach((button) =>
    button.addEventListener("click", () =>
      all("main details").forEach((fold) => (fold.open = button.dataset.folds === "open"))));
  showTarget();
};

// Values: a mark of a chart tells its value on hover and on keyboard focus.
const NEAR = 28; // farthest pointer from a mark, in pixels
const tip = make("div", { class: "tip", "aria-hidden": "true", hidden: "" });

const centre = (mark) => {
  const box = mark.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
};

const showTip = (mark) => {
  const [x, y] = centre(mark);
  all(".value.shown").forEach((other) => other.classList.remove("shown"));
  mark.classList.add("shown");
  tip.textContent = mark.getAttribute("aria-label");
  tip.hidden = false;
  const right = document.documentElement.clientWidth - tip.offsetWidth - 8;
  const above = y - tip.offsetHeight - 12;
  tip.style.left = `${Math.max(8, Math.min(x - tip.offsetWidth / 2, right))}px`;
  tip.style.top = `${above > 8 ? above : y + 14}px`;
};

const hideTip = () => {
  all(".value.shown").forEach((mark) => mark.classList.remove("shown"));
  tip.hidden = true;
};

const setChart = (chart) => {
  const marks = all(".value", chart);
  if (!marks.length) return;
  chart.setAttribute("role", "group");
  marks.forEach((mark, index) => {
    const title = mark.querySelector("title");
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", title.textContent);
    mark.setAttribute("tabindex", index ? "-1" : "0"); // one tab stop; arrows lead on
    title.remove(); // the browser would show it beside ours
    mark.addEventListener("focus", () => showTip(mark));
    mark.addEventListener("blur", hideTip);
  });
  chart.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hideTip();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const from = marks.indexOf(document.activeElement);
    if (!step || from < 0) return;
    event.preventDefault();
    const to = marks[(from + step + marks.length) % marks.length];
    marks[from].setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });
  chart.addEventListener("pointermove", (event) => {
    const far = (mark) => {
      const [x, y] = centre(mark);
      return Math.hypot(x - event.clientX, y - event.clientY);
    };
    const nearest = marks.reduce((best, mark) => (far(mark) < far(best) ? mark : best));
    if (far(nearest) <= NEAR) showTip(nearest);
    else hideTip();
  });
  chart.addEventListener("pointerleave", hideTip);
};

const setValues = () => {
  document.body.append(tip);
  all("svg[role=img]").forEach(setChart);
  addEventListener("scroll", hideTip, { passive: true });
};

// Tables: a button in each column's head sorts the rows.
const UNITS = {
  B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
  ms: 1e-3, s: 1, min: 60, h: 3600, d: 86400,
};

// The number that a cell begins with, in its smallest unit; NaN = it begins with none.
const readNumber = (text) => {
  const found = text.trim().replace(/^[−–](?=\d)/, "-")
    .match(/^(-?\d[\d\u2009\u202f,]*(?:\.\d+)?(?:e-?\d+)?)\s*([A-Za-z]*)/);
  if (!found) return NaN;
  return Number(found[1].replace(/[\u2009\u202f,]/g, "")) * (UNITS[found[2]] ?? 1);
};

const isEmpty = (text) => ["", "–"].includes(text.trim());

const sortRows = (table, column, direction) => {
  const body = table.tBodies[0];
  const lines = [...body.rows].map((row) => [row.cells[column].textContent, row]);
  const areNumbers = lines.every(([text]) => isEmpty(text) || !Number.isNaN(readNumber(text)));
  const compare = ([first], [second]) => {
    if (isEmpty(first) || isEmpty(second)) return isEmpty(first) - isEmpty(second); // always last
    if (areNumbers) return direction * (readNumber(first) - readNumber(second));
    return direction * first.localeCompare(second, "en", { numeric: true });
  };
  body.append(...lines.sort(compare).map(([, row]) => row));
};

const setSorting = (table) => {
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  if (table.tBodies[0].rows.length < 2) return;
  heads.forEach((head, column) => {
    const button = make("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const rises = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", rises ? "ascending" : "descending");
      sortRows(table, column, rises ? 1 : -1);
    });
  });
};

// Filter: only what belongs to the chosen question, observers, arm and verdict stays.
const KINDS = ["question", "observers", "arm", "verdict"];

const setFilter = (form) => {
  const details = all(".answer[data-title]");
  const choices = KINDS.map((kind) => form.elements[kind]);
  KINDS.forEach((kind, index) => {
    const names = [...new Set(details.map((one) => one.dataset[kind]))];
    choices[index].append(...names.map((name) => make("option", { value: name }, name)));
  });
  const hide = (element, isHidden) => element.classList.toggle("filtered", isHidden);
  const fits = (data, kinds = KINDS) =>
    kinds.every((kind) => !form.elements[kind].value || data[kind] === form.elements[kind].value);
  const apply = () => {
    const isWide = choices.every((choice) => !choice.value);
    details.forEach((one) => hide(one, !fits(one.dataset)));
    all(".matrix").forEach((table) => {
      all("[data-column]", table).forEach((head) => hide(head, !fits(head.dataset, ["arm"])));
      all("td", table).forEach((cell) => hide(cell, !fits(cell.dataset, ["arm"])));
      all("td", table).forEach((cell) =>
        cell.classList.toggle("match", !!form.elements.verdict.value && fits(cell.dataset)));
      all("tbody tr", table).forEach((row) =>
        hide(row, !isWide && !all("td[data-verdict]", row).some((cell) => fits(cell.dataset))));
    });
    all(".arm").forEach((card) =>
      hide(card, !isWide && !all("[data-title]", card).some((one) => fits(one.dataset))));
    const arms = [...new Set(details.map((one) => one.dataset.arm))];
    all("section figure").forEach((figure) => {
      const heading = figure.querySelector("h3").textContent;
      const own = arms.filter((arm) => heading.startsWith(`${arm} · `));
      const shown = details.filter((one) => heading.includes(one.dataset.title)
        && (!own.length || own.includes(one.dataset.arm)));
      hide(figure, shown.length > 0 && !shown.some((one) => fits(one.dataset)));
    });
    const kept = details.filter((one) => fits(one.dataset)).length;
    form.querySelector("[role=status]").textContent =
      isWide ? "" : `Shown: ${kept} of ${details.length} results.`;
  };
  form.addEventListener("change", apply);
  form.addEventListener("reset", () => setTimeout(apply));
};

all(".scripted").forEach((element) => (element.hidden = false));
setValues();
all("table:not(.matrix)").forEach(setSorting);
all("form.filter").forEach(setFilter);
setFolds();
