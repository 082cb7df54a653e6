// The view of the caller's jobs: their state and progress, and their cancellation.

import { el, table } from "./dom.js";
import { visible } from "./text.js";

/** The time between two looks while the view is open, in milliseconds. */
const REFRESH = 2000;
const OPEN = ["queued", "running"];

/** Returns the progress of a job. */
function progress({ progress: at, job_id: id }) {
  if (!at) return "–";
  const text = `${at.progress ?? ""}${at.total ? ` of ${at.total}` : ""} `;
  const bar = at.total ? el("progress", { max: at.total, value: at.progress, "aria-label": `Progress of ${id}` }) : null;
  return el("span", {}, bar, " ", text, at.message && visible(at.message));
}

/** Makes the view. */
export async function makeView(api, { fail }) {
  const place = el("div", {});
  const draw = async () => {
    const jobs = (await api.jobs())?.jobs ?? [];
    const rows = jobs.map((job) => [
      el("code", {}, job.job_id),
      visible(job.path ?? ""),
      el("span", { class: `badge ${["failed", "lost"].includes(job.status) ? "bad" : ""}` }, job.status),
      progress(job),
      job.error ? visible(job.error.message ?? job.error.code ?? "") : "",
      OPEN.includes(job.status) &&
        el(
          "button",
          { type: "button", "data-job": job.job_id, "aria-label": `Cancel ${job.job_id}`, onclick: () => cancel(job.job_id) },
          "Cancel",
        ),
    ]);
    const focused = document.activeElement?.dataset?.job;
    place.replaceChildren(table("Jobs", ["Job", "Path", "State", "Progress", "Error", "Action"], rows));
    if (focused) place.querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus();
  };
  const cancel = (id) => api.cancel(id).then(draw).catch(fail);
  await draw();
  const timer = setInterval(() => {
    if (place.isConnected) draw().catch(fail);
    else clearInterval(timer);
  }, REFRESH);
  return el("article", {}, el("h2", { tabindex: "-1" }, "Jobs"), place);
}
