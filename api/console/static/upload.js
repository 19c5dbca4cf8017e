// Improves the file field of the upload page: files can be dropped on it, their names are shown, and the button says
// that they are being sent. Without this script the form works as well.
"use strict";

const area = document.querySelector(".drop");
const field = area.querySelector("input[type=file]");
const chosen = area.querySelector(".chosen");
const form = field.form;
const button = form.querySelector("button");
const label = button.textContent;

area.querySelector(".by-dragging").hidden = false;

for (const name of ["dragenter", "dragover"]) {
  area.addEventListener(name, (event) => {
    event.preventDefault();
    area.classList.add("over");
  });
}

area.addEventListener("dragleave", () => area.classList.remove("over"));

area.addEventListener("drop", (event) => {
  event.preventDefault();
  area.classList.remove("over");
  if (event.dataTransfer.files.length) {
    field.files = event.dataTransfer.files;
    showChosen();
  }
});

field.addEventListener("change", showChosen);

form.addEventListener("submit", () => {
  button.disabled = true;
  button.textContent = "Uploading…";
});

// The browser may show the page again as it was left.
window.addEventListener("pageshow", () => {
  button.disabled = false;
  button.textContent = label;
});

function showChosen() {
  chosen.textContent = Array.from(field.files, (file) => file.name).join(", ");
}
