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
// Arrow keys go from part to part of a flame graph: down to what a part calls, up to its caller, sideways in its row. The name of
// the part, and of one that is clicked or touched, stands below the drawing.
for (const flame of document.querySelectorAll(".flame")) {
  const parts = [...flame.querySelectorAll("g")];
  const row = (part) => (part ? Number(part.querySelector("rect").getAttribute("y")) : NaN);
  let chosen = -1;
  const choose = (at) => {
    parts[chosen]?.classList.remove("chosen");
    chosen = at;
    parts[at].classList.add("chosen");
    parts[at].scrollIntoView({ block: "nearest", inline: "nearest" });
    flame.nextElementSibling.textContent = parts[at].firstChild.textContent;
  };
  const seek = (way, fits) => {
    let at = chosen + way;
    while (parts[at] && !fits(row(parts[at]))) at += way;
    return at;
  };
  // What a part calls stands right after it.
  const ways = {
    ArrowDown: (here) => (row(parts[chosen + 1]) > here ? chosen + 1 : -1),
    ArrowUp: (here) => seek(-1, (there) => there < here),
    ArrowLeft: (here) => seek(-1, (there) => there === here),
    ArrowRight: (here) => seek(1, (there) => there === here),
    Home: () => 0,
  };
  flame.addEventListener("keydown", (event) => {
    const way = event.altKey || event.ctrlKey || event.metaKey ? undefined : ways[event.key];
    const to = way && (chosen < 0 ? 0 : way(row(parts[chosen])));
    if (parts[to]) {
      event.preventDefault();
      choose(to);
    }
  });
  flame.addEventListener("click", (event) => {
    const at = parts.indexOf(event.target.closest("g"));
    if (at >= 0) choose(at);
  });
}
// Marks the parts of flame graphs whose names hold what is typed. Enter chooses one after the other.
const nameOf = (part) => part.firstChild.textContent.replace(/: [^:]*$/, "").toLowerCase();
for (const search of document.querySelectorAll(".search")) {
  let found = [];
  let at = -1;
  search.hidden = false;
  search.addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    const has = (part) => wanted !== "" && nameOf(part).includes(wanted);
    found = [];
    at = -1;
    for (const part of search.parentElement.querySelectorAll(".flame g")) {
      part.classList.toggle("found", has(part));
      if (has(part)) found.push(part);
    }
    search.querySelector("output").textContent = wanted === "" ? "" : `${found.length} found`;
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && found.length > 0) {
      at = (at + 1) % found.length;
      found[at].dispatchEvent(new Event("click", { bubbles: true }));
    }
  });
}
