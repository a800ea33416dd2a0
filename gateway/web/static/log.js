// What stands in a thread, in order: each message once, changed in place.
import { busy, make, note, when } from "./page.js";

const RECEIPTS = {
  sending: "Sending", kept: "Kept; it is sent when the connection is back", waiting: "Waits", running: "Taken",
  done: "Answered", failed: "Failed", stopped: "Stopped", interrupted: "Interrupted", dropped: "Taken out",
};
const BAD = new Set(["failed", "interrupted", "refused"]);
const NEAR = 60;  // pixels from the end that count as the end

export class Log {
  constructor(parts) {
    Object.assign(this, parts);
    this.entries = new Map();
    this.refs = new Set();  // what this browser sent and the gateway has
    this.more = false;
    this.loading = false;
    this.box.addEventListener("scroll", () => this.scrolled());
    this.newest.addEventListener("click", () => this.toEnd());
    this.earlier.addEventListener("click", () => this.older());
    this.list.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => { if (this.follows) this.toEnd(); }).observe(this.box);
    this.follows = true;
  }

  get size() { return this.entries.size; }

  /**
   * All of it, as it is now. Earlier pages that somebody reads stay above, read anew: meanwhile
   * something of them may have changed, or more may have come than one page holds.
   */
  whole(entries, more) {
    const first = entries.length && more ? entries[0].at : 0;
    this.focused(() => this.renew(entries, first, Infinity));
    const above = [...this.entries.values()].filter((one) => !one.data.mine_only && one.data.at < first);
    if (!above.length) this.more = more;
    else if (this.follows) { above.forEach((one) => this.remove(one.data.id)); this.more = more; }
    else this.above(first, Math.min(...above.map((one) => one.data.at)));
    this.earlier.hidden = !this.more;
    if (this.follows) this.toEnd();
  }

  /** What stands from one instant to another is this and nothing else. */
  renew(entries, first, last) {
    const there = new Set(entries.map((one) => one.id));
    for (const [id, { data }] of this.entries) {
      if (!data.mine_only && !there.has(id) && data.at >= first && data.at < last) this.remove(id);
    }
    for (const data of entries) this.put(data);
  }

  /** Read anew what is drawn above an instant. */
  async above(last, oldest) {
    this.loading = true;
    try {
      for (let before = last; before > oldest;) {
        const { entries, more } = await this.before(before);
        const first = more && entries.length ? entries[0].at : 0;
        this.renew(entries, first, before);
        this.more = more;
        if (first >= before) break;
        before = first;
      }
      this.earlier.hidden = !this.more;
    } catch (fault) {
      note(fault.message, true);
    } finally {
      this.loading = false;
    }
  }

  /** Some entries as they are now, and ids of those that are gone. */
  change(entries, removed) {
    this.focused(() => this.changed(entries, removed));
  }

  /** A button that was pressed goes with what it changed: who used the keyboard stays in the thread. */
  focused(work) {
    const inside = this.list.contains(document.activeElement);
    work();
    if (inside && !this.list.contains(document.activeElement)) this.box.focus({ preventScroll: true });
  }

  changed(entries, removed) {
    for (const id of removed) this.remove(id);
    const first = this.more && this.size ? this.first() : 0;  // what is older comes with its page
    for (const data of entries) if (this.entries.has(data.id) || data.at >= first) this.put(data);
    if (this.follows) this.toEnd(); else if (entries.length) this.newest.hidden = false;
  }

  /** Something that is only in this browser so far; what comes with its ref takes its place. */
  local(data) {
    if (this.refs.has(data.ref)) return;
    this.put({ ...data, mine_only: true });
    this.follows = true;
    this.toEnd();
  }

  put(data) {
    if (data.ref && !data.mine_only) {
      this.refs.add(data.ref);
      this.remove(`local ${data.ref}`);
    }
    const known = this.entries.get(data.id);
    if (known) {
      const before = known.data;
      known.data = data;
      if (before.html !== data.html) renew(known.body, data.html);
      if (!same(before.buttons, data.buttons)) known.buttons.replaceChildren(...this.drawButtons(data));
      if (!same(before.files, data.files)) known.files.replaceChildren(...data.files.map(drawFile));
      this.drawReceipt(known);
      return;
    }
    const one = this.draw(data);
    this.entries.set(data.id, one);
    let next = this.list.lastElementChild;
    while (next && after(this.entries.get(next.dataset.id).data, data)) next = next.previousElementSibling;
    if (next) next.after(one.item); else this.list.prepend(one.item);
  }

  remove(id) {
    this.entries.get(id)?.item.remove();
    this.entries.delete(id);
  }

  receipts() { for (const one of this.entries.values()) if (one.data.receipt === "waiting") this.drawReceipt(one); }

  /** The newest answer in plain words, to be read out. */
  lastWords() {
    const answers = [...this.entries.values()].filter((one) => !one.data.key);
    const last = answers.sort((a, b) => (after(a.data, b.data) ? 1 : -1)).pop();
    return last ? last.body.textContent.slice(0, 400) : "";
  }

  // Drawing ----------------------------------------------------------------------------------

  draw(data) {
    const mine = this.me.has(data.key);
    const whose = data.key ? (mine ? "mine" : "other") : data.kind;
    const name = data.key ? (mine ? "You" : data.name) : "Agent";
    const instant = new Date(data.at).toISOString();
    const one = {
      data,
      body: make("div", { class: data.key ? "body said" : "body" }),
      files: make("ul", { class: "files" }, ...data.files.map(drawFile)),
      buttons: make("div", { class: "buttons" }, ...this.drawButtons(data)),
      foot: make("span", { class: "receipt" }),
    };
    one.body.innerHTML = data.html;  // made by the gateway, which lets nothing through
    one.item = make("li", { class: `entry ${whose}`, "data-id": data.id },
      make("p", { class: "who-when" }, make("span", { class: "name" }, name), make("time", { datetime: instant }, when(instant)), one.foot),
      one.body, one.files, one.buttons);
    this.drawReceipt(one);
    return one;
  }

  drawReceipt(one) {
    const { receipt, note: remark, turn, why } = one.data;
    let words = RECEIPTS[receipt] ?? receipt;
    const place = receipt === "waiting" && turn ? this.place(turn) : 0;
    if (place > 0) words = place === 1 ? "Waits, next" : `Waits, ${place - 1} before it`;
    const said = [words, remark, why].filter(Boolean).join(" · ");
    one.foot.textContent = said;
    one.foot.classList.toggle("bad", BAD.has(receipt) || Boolean(remark));
    one.item.classList.toggle("pending", receipt === "sending" || receipt === "kept");
  }

  drawButtons(data) {
    return data.buttons.flat().map((button) => make("button", {
      type: "button",
      class: `small ${{ success: "main", primary: "main", danger: "danger" }[button.style] ?? ""}`,
      onclick: (event) => busy(event.currentTarget, () => button.run ? button.run() : this.press(button, data)),
    }, button.label));
  }

  clicked(event) {
    const copy = event.target.closest(".copy");
    if (!copy) return;
    const text = copy.parentElement.querySelector("code").textContent;
    const done = () => { copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1500); };
    copyText(text).then(done, () => note("The browser does not let the page copy; select the text instead.", true));
  }

  // Scrolling --------------------------------------------------------------------------------

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.box;
    this.follows = scrollHeight - scrollTop - clientHeight < NEAR;
    if (this.follows) this.newest.hidden = true;
    if (scrollTop < 200 && this.more) this.older();
  }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.follows = true;
    this.newest.hidden = true;
  }

  /** When the oldest was made of what the gateway has; all before it is on earlier pages. */
  first() {
    return Math.min(...[...this.entries.values()].filter((one) => !one.data.mine_only).map((one) => one.data.at));
  }

  async older() {
    if (this.loading || !this.more) return;
    this.loading = true;
    try {
      const first = this.first();
      const { entries, more } = await this.before(Number.isFinite(first) ? first : Date.now());
      const height = this.box.scrollHeight, top = this.box.scrollTop;
      const fresh = entries.filter((one) => !this.entries.has(one.id));
      for (const data of fresh) this.put(data);
      this.more = more && fresh.length > 0;
      this.earlier.hidden = !this.more;
      this.box.scrollTop = top + this.box.scrollHeight - height;
    } catch (fault) {
      note(fault.message, true);
    } finally {
      this.loading = false;
    }
  }
}

const after = (a, b) => (a.mine_only ?? false) !== (b.mine_only ?? false) ? Boolean(a.mine_only) : a.at > b.at || (a.at === b.at && a.id > b.id);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Only what is different is drawn anew, so that what somebody selected above stays selected. */
function renew(body, html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  const fresh = [...made.content.childNodes], old = [...body.childNodes];
  fresh.forEach((node, nth) => {
    if (!old[nth]) body.append(node);
    else if (!old[nth].isEqualNode(node)) old[nth].replaceWith(node);
  });
  old.slice(fresh.length).forEach((node) => node.remove());
}

function drawFile(file) {
  const size = file.size ? ` (${bytes(file.size)})` : "";
  const inside = file.image ? make("img", { src: file.url, alt: file.name, loading: "lazy" }) : `📎 ${file.name}${size}`;
  return make("li", {}, make("a", { href: file.url, download: file.image ? null : file.name, target: file.image ? "_blank" : null, rel: "noopener" }, inside));
}

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${Math.round(count / 1000)} kB` : `${(count / 1e6).toFixed(1)} MB`;
}

/** Also where the page is not served over https, for which browsers have no clipboard. */
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = make("textarea", { class: "sr", readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("not copied");
}
