"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    if (head.dataset.sort === undefined) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const number = head.dataset.sort === "number";
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b);
        const order = number ? (parseFloat(x) || 0) - (parseFloat(y) || 0) : x.localeCompare(y);
        return up ? order : -order;
      });
      body.append(...rows);
    });
  }
  if (table.dataset.filter === undefined) continue;
  const box = document.createElement("input");
  box.type = "search";
  box.className = "filter";
  box.placeholder = table.dataset.filter;
  box.setAttribute("aria-label", table.dataset.filter);
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
  table.parentElement.before(box);
}
