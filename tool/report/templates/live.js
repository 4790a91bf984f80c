// Each event brings what is inside one element, made by nstar, which escapes every value in it.
const source = new EventSource("events");
for (const part of ["headline", "now", "busiest", "notes", "figures"]) {
  source.addEventListener(part, (event) => { document.getElementById(part).innerHTML = event.data; });
}
// The report is the next page: going back does not lead to one that nobody serves any longer.
source.addEventListener("over", () => { source.close(); location.replace("report"); });
source.addEventListener("failed", (event) => { source.close(); document.getElementById("now").innerHTML = event.data; document.getElementById("end").hidden = true; });
source.addEventListener("open", () => { document.getElementById("lost").hidden = true; });
source.addEventListener("error", () => { document.getElementById("lost").hidden = false; });
document.getElementById("end").addEventListener("submit", (event) => {
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  fetch("end", { method: "POST" }).catch(() => { button.disabled = false; });
});
