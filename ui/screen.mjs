// What a terminal shows: cells, cursor and colours, moved by the text that programs print. A subset of a VT100 with what shells and
// their editors, pagers and full-screen programs use today. Not there: sixels, mouse reports, titles, double-size lines, right-to-left
// text. Knows no page. Source: ECMA-48; the documents of xterm, "Control Sequences".

const SCROLLBACK_MAX = 2000; // lines kept above
const SEQUENCE_MAX = 4096; // characters of an unfinished sequence; what is longer is dropped
const PARAMETERS_MAX = 32;
const REPEAT_MAX = 10000;
const TAB = 8;

export const PLAIN = Object.freeze({ fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, inverse: false, hidden: false, strike: false });

/** What lines are drawn of, where the character set is that of line drawing. */
const LINES = { j: '┘', k: '┐', l: '┌', m: '└', n: '┼', q: '─', t: '├', u: '┤', v: '┴', w: '┬', x: '│', a: '▒', '`': '◆', f: '°', g: '±', '~': '·', o: '⎺', s: '⎽' };

const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /[\p{Mn}\p{Me}\u200b-\u200f\u2060\ufeff]/u;

/** Columns that a character takes. */
export const widthOf = (ch) => (ch < '\u0300' ? 1 : NO_WIDTH.test(ch) ? 0 : WIDE.test(ch) ? 2 : 1);

const clamp = (n, low, high) => Math.min(Math.max(n, low), high);

export class Screen {
	/** reply(text): what the terminal answers a program that asks it. */
	constructor(cols, rows, reply = () => {}) {
		this.cols = cols;
		this.rows = rows;
		this.reply = reply;
		this.reset();
	}

	reset() {
		this.above = []; // lines that went out at the top
		this.gone = 0; // how many ever did
		this.style = PLAIN;
		this.lines = this.blankLines(this.rows);
		this.other = null; // the usual screen, while the alternate one is shown
		Object.assign(this, { x: 0, y: 0, top: 0, bottom: this.rows - 1, isPending: false, rest: '', last: ' ' });
		Object.assign(this, { hasCursor: true, wraps: true, inserts: false, fromTop: false, appKeys: false, brackets: false, isDrawing: false });
		this.saved = null;
		this.dirty = new Set(this.lines.keys());
	}

	// ---- lines ----

	/** Erased cells keep the background, as everything does that is erased. */
	blank() {
		return { ch: ' ', style: this.style.bg === null ? PLAIN : { ...PLAIN, bg: this.style.bg } };
	}

	blankLine() {
		return Array.from({ length: this.cols }, () => this.blank());
	}

	blankLines(n) {
		return Array.from({ length: n }, () => this.blankLine());
	}

	touch(from, to = from) {
		for (let y = from; y <= to; y++)
			this.dirty.add(y);
	}

	/** Lines go up by n in the region; those that leave the top of the screen are kept above. */
	scrollUp(n, top = this.top) {
		const count = Math.min(n, this.bottom - top + 1);
		const gone = this.lines.splice(top, count);
		this.lines.splice(this.bottom - count + 1, 0, ...this.blankLines(count));
		if (top === 0 && !this.other)
			this.keep(gone);
		this.touch(top, this.bottom);
	}

	keep(lines) {
		this.above.push(...lines);
		this.gone += lines.length;
		if (this.above.length > SCROLLBACK_MAX)
			this.above.splice(0, this.above.length - SCROLLBACK_MAX);
	}

	scrollDown(n, top = this.top) {
		const count = Math.min(n, this.bottom - top + 1);
		this.lines.splice(this.bottom - count + 1, count);
		this.lines.splice(top, 0, ...this.blankLines(count));
		this.touch(top, this.bottom);
	}

	erase(y, from, to) {
		for (let x = from; x < Math.min(to, this.cols); x++)
			this.lines[y][x] = this.blank();
		this.touch(y);
	}

	/** Another size: lines are cut or made longer, and those at the bottom stay with the cursor. */
	resize(cols, rows) {
		const fit = (lines) => lines.map((line) => Array.from({ length: cols }, (_, x) => line[x] ?? { ch: ' ', style: PLAIN }));
		this.cols = cols;
		const surplus = Math.max(0, this.y - rows + 1);
		if (!this.other)
			this.keep(this.lines.slice(0, surplus));
		this.lines = fit(this.lines.slice(surplus, surplus + rows));
		this.lines.push(...this.blankLines(rows - this.lines.length));
		if (this.other) {
			this.other.lines = fit(this.other.lines.slice(0, rows));
			this.other.lines.push(...this.blankLines(rows - this.other.lines.length));
		}
		this.rows = rows;
		Object.assign(this, { y: clamp(this.y - surplus, 0, rows - 1), x: clamp(this.x, 0, cols - 1), top: 0, bottom: rows - 1, isPending: false });
		this.touch(0, rows - 1);
	}

	// ---- the cursor ----

	moveTo(x, y) {
		const low = this.fromTop ? this.top : 0, high = this.fromTop ? this.bottom : this.rows - 1;
		this.touch(this.y);
		this.x = clamp(x, 0, this.cols - 1);
		this.y = clamp(this.fromTop ? y + this.top : y, low, high);
		this.isPending = false;
		this.touch(this.y);
	}

	/** By lines and columns; a region holds those who are in it. */
	move(dx, dy) {
		const isIn = this.y >= this.top && this.y <= this.bottom;
		this.touch(this.y);
		this.x = clamp(this.x + dx, 0, this.cols - 1);
		this.y = clamp(this.y + dy, isIn ? this.top : 0, isIn ? this.bottom : this.rows - 1);
		this.isPending = false;
		this.touch(this.y);
	}

	lineFeed() {
		if (this.y === this.bottom)
			this.scrollUp(1);
		else
			this.move(0, 1);
		this.isPending = false;
	}

	reverseFeed() {
		if (this.y === this.top)
			this.scrollDown(1);
		else
			this.move(0, -1);
	}

	save() {
		const { x, y, style, fromTop, isDrawing } = this;
		this.saved = { x, y, style, fromTop, isDrawing };
	}

	restore() {
		const { x = 0, y = 0, style = PLAIN, fromTop = false, isDrawing = false } = this.saved ?? {};
		this.touch(this.y);
		Object.assign(this, { x: clamp(x, 0, this.cols - 1), y: clamp(y, 0, this.rows - 1), style, fromTop, isDrawing, isPending: false });
		this.touch(this.y);
	}

	// ---- text ----

	put(given) {
		const ch = this.isDrawing ? LINES[given] ?? given : given, width = widthOf(ch);
		if (width === 0) {
			const cell = this.lines[this.y][Math.max(0, this.x - (this.isPending ? 0 : 1))];
			if (cell.ch.length < 16) // as many marks as anybody stacks
				cell.ch += ch;
			this.touch(this.y);
			return;
		}
		if (this.isPending || this.x + width > this.cols)
			this.wrap();
		if (this.inserts)
			this.shift(width);
		const line = this.lines[this.y];
		line[this.x] = { ch, style: this.style };
		if (width === 2 && this.x + 1 < this.cols)
			line[this.x + 1] = { ch: '', style: this.style };
		this.last = ch;
		this.touch(this.y);
		this.isPending = this.wraps && this.x + width >= this.cols;
		this.x = Math.min(this.x + width, this.cols - 1);
	}

	wrap() {
		if (!this.wraps)
			return;
		this.x = 0;
		this.lineFeed();
	}

	/** Makes room for n cells at the cursor. */
	shift(n) {
		const line = this.lines[this.y], count = Math.min(n, this.cols - this.x);
		line.splice(this.x, 0, ...Array.from({ length: count }, () => this.blank()));
		line.length = this.cols;
		this.touch(this.y);
	}

	/** Takes n cells out at the cursor. */
	pull(n) {
		const line = this.lines[this.y], count = Math.min(n, this.cols - this.x);
		line.splice(this.x, count);
		line.push(...Array.from({ length: count }, () => this.blank()));
		this.touch(this.y);
	}

	/** What a program printed, decoded. A sequence may come in pieces. */
	write(text) {
		const all = this.rest + text;
		this.rest = '';
		for (let i = 0; i < all.length;) {
			const code = all.charCodeAt(i);
			if (code === 0x1b) {
				const n = this.sequence(all, i);
				if (n === 0) {
					this.rest = all.length - i > SEQUENCE_MAX ? '' : all.slice(i);
					return;
				}
				i += n;
			} else if (code < 0x20 || code === 0x7f) {
				this.control(code);
				i++;
			} else {
				const ch = String.fromCodePoint(all.codePointAt(i));
				this.put(ch);
				i += ch.length;
			}
		}
	}

	control(code) {
		switch (code) {
		case 0x08: this.move(-1, 0); break;
		case 0x09: this.moveTo((Math.floor(this.x / TAB) + 1) * TAB, this.fromTop ? this.y - this.top : this.y); break;
		case 0x0a: case 0x0b: case 0x0c: this.lineFeed(); break;
		case 0x0d: this.x = 0; this.isPending = false; this.touch(this.y); break;
		default: break; // the bell and others say nothing here
		}
	}

	/** How many characters the sequence at i takes; 0 = more must come. */
	sequence(all, i) {
		const kind = all[i + 1];
		if (kind === undefined)
			return 0;
		if (kind === '[')
			return this.controlSequence(all, i);
		if (']PX^_'.includes(kind)) { // strings for others: up to BEL or ESC \
			const end = all.slice(i).search(/\x07|\x1b\\/);
			return end < 0 ? 0 : end + (all[i + end] === '\x07' ? 1 : 2);
		}
		if ('()*+'.includes(kind)) {
			if (all[i + 2] === undefined)
				return 0;
			if (kind === '(')
				this.isDrawing = all[i + 2] === '0';
			return 3;
		}
		if ('# %'.includes(kind))
			return all[i + 2] === undefined ? 0 : 3;
		this.escape(kind);
		return 2;
	}

	escape(kind) {
		switch (kind) {
		case '7': this.save(); break;
		case '8': this.restore(); break;
		case 'D': this.lineFeed(); break;
		case 'E': this.x = 0; this.lineFeed(); break;
		case 'M': this.reverseFeed(); break;
		case 'c': this.reset(); break;
		default: break;
		}
	}

	controlSequence(all, i) {
		let end = i + 2;
		while (end < all.length && all.charCodeAt(end) >= 0x20 && all.charCodeAt(end) < 0x40)
			end++;
		if (end >= all.length)
			return 0;
		const text = all.slice(i + 2, end), mark = /^[<=>?]/.test(text) ? text[0] : '';
		if (/[ -/]/.test(text) && !text.endsWith('!'))
			return end - i + 1; // shapes of cursors and the like
		const p = text.slice(mark.length).split(/[;:]/).slice(0, PARAMETERS_MAX).map((n) => clamp(parseInt(n, 10) || 0, 0, 65535));
		this.command(mark, all[end], p);
		return end - i + 1;
	}

	command(mark, final, p) {
		const n = Math.max(1, p[0]), column = this.x, row = this.fromTop ? this.y - this.top : this.y;
		switch (mark + final) {
		case 'A': this.move(0, -n); break;
		case 'B': case 'e': this.move(0, n); break;
		case 'C': case 'a': this.move(n, 0); break;
		case 'D': this.move(-n, 0); break;
		case 'E': this.move(-this.cols, n); break;
		case 'F': this.move(-this.cols, -n); break;
		case 'G': case '`': this.moveTo(n - 1, row); break;
		case 'd': this.moveTo(column, n - 1); break;
		case 'H': case 'f': this.moveTo(Math.max(1, p[1] ?? 1) - 1, n - 1); break;
		case 'J': this.eraseScreen(p[0]); break;
		case 'K': this.erase(this.y, p[0] === 0 ? this.x : 0, p[0] === 1 ? this.x + 1 : this.cols); break;
		case 'X': this.erase(this.y, this.x, this.x + n); break;
		case '@': this.shift(n); break;
		case 'P': this.pull(n); break;
		case 'L': if (this.isInRegion()) this.scrollDown(n, this.y); break;
		case 'M': if (this.isInRegion()) this.scrollUp(n, this.y); break;
		case 'S': this.scrollUp(n); break;
		case 'T': this.scrollDown(n); break;
		case 'b': for (let i = 0; i < Math.min(n, REPEAT_MAX); i++) this.put(this.last); break;
		case 'm': this.paint(p); break;
		case 'r': this.setRegion(p); break;
		case 's': this.save(); break;
		case 'u': this.restore(); break;
		case 'c': if (p[0] === 0) this.reply('\x1b[?1;2c'); break; // a VT100 with advanced video
		case 'n': this.report(p[0]); break;
		case 'h': case 'l': if (p.includes(4)) this.inserts = final === 'h'; break;
		case '?h': case '?l': for (const mode of p) this.setMode(mode, final === 'h'); break;
		default: break;
		}
	}

	isInRegion() {
		this.isPending = false;
		return this.y >= this.top && this.y <= this.bottom;
	}

	eraseScreen(how) {
		if (how === 3) {
			this.above = [];
			return;
		}
		const from = how === 0 ? this.y + 1 : 0, to = how === 1 ? this.y : this.rows;
		for (let y = from; y < to; y++)
			this.erase(y, 0, this.cols);
		if (how === 0)
			this.erase(this.y, this.x, this.cols);
		if (how === 1)
			this.erase(this.y, 0, this.x + 1);
	}

	setRegion([from, to]) {
		const top = Math.max(1, from) - 1, bottom = Math.min(to || this.rows, this.rows) - 1;
		if (top >= bottom)
			return;
		Object.assign(this, { top, bottom });
		this.moveTo(0, 0);
	}

	report(what) {
		if (what === 5)
			this.reply('\x1b[0n');
		if (what === 6)
			this.reply(`\x1b[${(this.fromTop ? this.y - this.top : this.y) + 1};${this.x + 1}R`);
	}

	setMode(mode, isOn) {
		switch (mode) {
		case 1: this.appKeys = isOn; break;
		case 6: this.fromTop = isOn; this.moveTo(0, 0); break;
		case 7: this.wraps = isOn; break;
		case 25: this.hasCursor = isOn; this.touch(this.y); break;
		case 47: case 1047: this.alternate(isOn); break;
		case 1048: if (isOn) this.save(); else this.restore(); break;
		case 1049: if (isOn) this.save(); this.alternate(isOn); if (!isOn) this.restore(); break;
		case 2004: this.brackets = isOn; break;
		default: break;
		}
	}

	/** Full-screen programs have a screen of their own, and leave the usual one as it was. */
	alternate(isOn) {
		if (isOn === (this.other !== null))
			return;
		if (isOn) {
			this.other = { lines: this.lines };
			this.lines = this.blankLines(this.rows);
		} else {
			this.lines = this.other.lines;
			this.other = null;
		}
		Object.assign(this, { top: 0, bottom: this.rows - 1, isPending: false });
		this.touch(0, this.rows - 1);
	}

	// ---- colours ----

	paint(p) {
		const style = { ...this.style };
		for (let i = 0; i < p.length; i++)
			i += paintOne(style, p, i);
		this.style = Object.freeze(style);
	}
}

const FLAGS = { 1: ['bold', true], 2: ['dim', true], 3: ['italic', true], 4: ['underline', true], 7: ['inverse', true], 8: ['hidden', true], 9: ['strike', true],
	23: ['italic', false], 24: ['underline', false], 27: ['inverse', false], 28: ['hidden', false], 29: ['strike', false] };

/** Takes parameter i; how many of those behind it belong to it. Colours are numbers of the 256, or #rrggbb. */
function paintOne(style, p, i) {
	const n = p[i];
	if (n === 0)
		Object.assign(style, PLAIN);
	else if (n === 22)
		Object.assign(style, { bold: false, dim: false });
	else if (FLAGS[n])
		style[FLAGS[n][0]] = FLAGS[n][1];
	else if (n === 38 || n === 48)
		return paintFrom(style, n === 38 ? 'fg' : 'bg', p, i);
	else if (n === 39 || n === 49)
		style[n === 39 ? 'fg' : 'bg'] = null;
	else if ((n >= 30 && n < 38) || (n >= 90 && n < 98))
		style.fg = n < 40 ? n - 30 : n - 82;
	else if ((n >= 40 && n < 48) || (n >= 100 && n < 108))
		style.bg = n < 50 ? n - 40 : n - 92;
	return 0;
}

function paintFrom(style, where, p, i) {
	if (p[i + 1] === 5) {
		style[where] = Math.min(p[i + 2] ?? 0, 255);
		return 2;
	}
	if (p[i + 1] === 2) {
		const rgb = [2, 3, 4].map((k) => Math.min(p[i + k] ?? 0, 255));
		style[where] = `#${rgb.map((c) => c.toString(16).padStart(2, '0')).join('')}`;
		return 4;
	}
	return 1;
}

/** A colour of the 256 beyond the first 16: a cube of 6, and greys. */
export function colourOf(n) {
	if (n >= 232) {
		const grey = 8 + (n - 232) * 10;
		return `rgb(${grey} ${grey} ${grey})`;
	}
	const level = (v) => (v === 0 ? 0 : 55 + v * 40), at = n - 16;
	return `rgb(${level(Math.floor(at / 36))} ${level(Math.floor(at / 6) % 6)} ${level(at % 6)})`;
}

// ---- keys ----

const ARROWS = { ArrowUp: 'A', ArrowDown: 'B', ArrowRight: 'C', ArrowLeft: 'D', Home: 'H', End: 'F' };
const TILDES = { Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const PF = { F1: 'P', F2: 'Q', F3: 'R', F4: 'S' };
const PLAIN_KEYS = { Enter: '\r', Tab: '\t', Backspace: '\x7f', Escape: '\x1b' };

/** What a pressed key sends; null = it is not for the terminal, or its text comes as input. */
export function keyText({ key, ctrlKey, altKey, metaKey, shiftKey }, appKeys) {
	const held = 1 + (shiftKey ? 1 : 0) + (altKey ? 2 : 0) + (ctrlKey ? 4 : 0);
	if (metaKey)
		return null;
	if (ARROWS[key])
		return held > 1 ? `\x1b[1;${held}${ARROWS[key]}` : `\x1b${appKeys ? 'O' : '['}${ARROWS[key]}`;
	if (PF[key])
		return held > 1 ? `\x1b[1;${held}${PF[key]}` : `\x1bO${PF[key]}`;
	if (TILDES[key])
		return `\x1b[${TILDES[key]}${held > 1 ? `;${held}` : ''}~`;
	if (key === 'Tab' && shiftKey)
		return '\x1b[Z';
	const alt = altKey ? '\x1b' : '';
	if (PLAIN_KEYS[key])
		return alt + PLAIN_KEYS[key];
	if (key.length !== 1 || (shiftKey && ctrlKey))
		return null; // Ctrl Shift C and V are the browser's
	if (ctrlKey)
		return controlText(key, alt);
	return altKey ? alt + key : null;
}

function controlText(key, alt) {
	const at = '@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_'.indexOf(key.toUpperCase());
	if (at >= 0)
		return alt + String.fromCharCode(at);
	return key === ' ' ? `${alt}\0` : key === '/' ? `${alt}\x1f` : null;
}

/** What pasting sends: with marks around it where the program asked, and none of those marks inside. */
export function pasteText(text, brackets) {
	const clean = text.replace(/\r?\n/g, '\r');
	return brackets ? `\x1b[200~${clean.replaceAll('\x1b', '')}\x1b[201~` : clean;
}
