// Arrow keys move along a chart, which is then a single stop of the Tab key. The page works without this.
for (const strips of document.querySelectorAll(".strips")) {
  const items = [...strips.children];
  const rest = (chosen) => items.forEach((item) => { item.tabIndex = item === chosen ? 0 : -1; });
  rest(items[0]);
  strips.addEventListener("focusin", (event) => rest(event.target));
  strips.addEventListener("keydown", (event) => {
    const at = items.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (items[to]) {
      event.preventDefault();
      items[to].focus();
    }
  });
}
// Marks the parts of flame graphs whose names hold what is typed.
for (const search of document.querySelectorAll(".search")) {
  search.hidden = false;
  search.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    let found = 0;
    for (const part of search.parentElement.querySelectorAll(".flame g")) {
      const has = wanted !== "" && part.firstChild.textContent.toLowerCase().includes(wanted);
      part.classList.toggle("found", has);
      found += has;
    }
    search.querySelector("output").textContent = wanted === "" ? "" : `${found} found`;
  });
}
