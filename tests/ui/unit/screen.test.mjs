// What a terminal shows of what programs print.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { colourOf, keyText, pasteText, Screen, widthOf } from '../../../ui/screen.mjs';

const textOf = (screen) => screen.lines.map((line) => line.map((c) => c.ch).join('').trimEnd());
const shown = (text, cols = 10, rows = 4) => {
	const screen = new Screen(cols, rows);
	screen.write(text);
	return screen;
};
const at = (screen) => [screen.x, screen.y];

test('printing, line ends, tabs and backspaces', () => {
	for (const [text, want, x, y] of [
		['ab\r\ncd', ['ab', 'cd', '', ''], 2, 1],
		['ab\ncd', ['ab', '  cd', '', ''], 4, 1],
		['ab\bc', ['ac', '', '', ''], 2, 0],
		['\b\bx', ['x', '', '', ''], 1, 0],
		['a\tb', ['a       b', '', '', ''], 9, 0],
		['a\t\t\tb', ['a        b', '', '', ''], 9, 0],
		['abcdefghij', ['abcdefghij', '', '', ''], 9, 0],
		['abcdefghijk', ['abcdefghij', 'k', '', ''], 1, 1],
		['abcdefghij\r\nk', ['abcdefghij', 'k', '', ''], 1, 1],
		['abcdefghij\bX', ['abcdefghXj', '', '', ''], 9, 0],
		['\x1b[?7labcdefghijk', ['abcdefghik', '', '', ''], 9, 0],
		['a\x07\x00\x0e\x0f\x7fb', ['ab', '', '', ''], 2, 0],
	]) {
		const screen = shown(text);
		assert.deepEqual(textOf(screen), want, JSON.stringify(text));
		assert.deepEqual(at(screen), [x, y], JSON.stringify(text));
	}
});

test('what leaves at the top is kept above, to a ceiling', () => {
	const screen = shown('1\r\n2\r\n3\r\n4\r\n5\r\n6');
	assert.deepEqual(textOf(screen), ['3', '4', '5', '6']);
	assert.deepEqual(screen.above.map((l) => l[0].ch), ['1', '2']);
	screen.write('x\r\n'.repeat(5000));
	assert.equal(screen.above.length, 2000);
	screen.write('\x1b[3J');
	assert.equal(screen.above.length, 0);
});

test('the cursor goes where it is sent, and no further', () => {
	for (const [text, x, y] of [
		['\x1b[3;4H', 3, 2], ['\x1b[H', 0, 0], ['\x1b[99;99H', 9, 3], ['\x1b[0;0f', 0, 0], ['\x1b[2;3H\x1b[A\x1b[D', 1, 0],
		['\x1b[2;3H\x1b[5B\x1b[50C', 9, 3], ['\x1b[2;3H\x1b[G', 0, 1], ['\x1b[2;3H\x1b[4d', 2, 3], ['\x1b[2;3H\x1b[E', 0, 2], ['\x1b[2;3H\x1b[F', 0, 0],
		['\x1b[2;3H\x1b7\x1b[H\x1b8', 2, 1], ['\x1b[2;3H\x1b[s\x1b[H\x1b[u', 2, 1], ['\x1b8', 0, 0], ['\x1b[2;3H\x1bM\x1bM\x1bM', 2, 0], ['\x1b[2;3H\x1bE', 0, 2],
	])
		assert.deepEqual(at(shown(text)), [x, y], JSON.stringify(text));
});

test('erasing, inserting and deleting', () => {
	const full = 'aaaaa\r\nbbbbb\r\nccccc\r\nddddd\x1b[2;3H';
	for (const [text, want] of [
		['\x1b[K', ['aaaaa', 'bb', 'ccccc', 'ddddd']], ['\x1b[1K', ['aaaaa', '   bb', 'ccccc', 'ddddd']], ['\x1b[2K', ['aaaaa', '', 'ccccc', 'ddddd']],
		['\x1b[J', ['aaaaa', 'bb', '', '']], ['\x1b[1J', ['', '   bb', 'ccccc', 'ddddd']], ['\x1b[2J', ['', '', '', '']],
		['\x1b[2X', ['aaaaa', 'bb  b', 'ccccc', 'ddddd']], ['\x1b[2P', ['aaaaa', 'bbb', 'ccccc', 'ddddd']], ['\x1b[2@', ['aaaaa', 'bb  bbb', 'ccccc', 'ddddd']],
		['\x1b[L', ['aaaaa', '', 'bbbbb', 'ccccc']], ['\x1b[M', ['aaaaa', 'ccccc', 'ddddd', '']], ['\x1b[99M', ['aaaaa', '', '', '']],
		['\x1b[S', ['bbbbb', 'ccccc', 'ddddd', '']], ['\x1b[T', ['', 'aaaaa', 'bbbbb', 'ccccc']], ['\x1b[4hx', ['aaaaa', 'bbxbbb', 'ccccc', 'ddddd']],
		['x\x1b[3b', ['aaaaa', 'bbxxxx', 'ccccc', 'ddddd']],
	])
		assert.deepEqual(textOf(shown(full + text)), want, JSON.stringify(text));
});

test('a region scrolls alone, and above nothing is kept of it', () => {
	const screen = shown('1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1Hx\r\ny');
	assert.deepEqual(textOf(screen), ['1', 'x', 'y', '4']);
	assert.equal(screen.above.length, 0);
	screen.write('\x1b[?6h\x1b[1;1Ho');
	assert.deepEqual(textOf(screen), ['1', 'o', 'y', '4']);
	screen.write('\x1b[?6l\x1b[3;2r\x1b[r\x1b[4;1H\r\nz');
	assert.deepEqual(textOf(screen), ['o', 'y', '4', 'z']);
});

test('full-screen programs leave the usual screen as it was', () => {
	const screen = shown('shell\x1b[?1049h\x1b[2J\x1b[Heditor\x1b[?25l');
	assert.deepEqual(textOf(screen), ['editor', '', '', '']);
	assert.equal(screen.hasCursor, false);
	screen.write('\r\n'.repeat(9) + '\x1b[?25h\x1b[?1049l$');
	assert.deepEqual(textOf(screen), ['shell$', '', '', '']);
	assert.equal(screen.above.length, 0);
});

test('colours and the rest of a style', () => {
	const screen = shown('\x1b[1;31ma\x1b[22;38;5;200mb\x1b[48;2;1;2;3mc\x1b[0;97;100;7md\x1b[me\x1b[3;4;9mf\x1b[39;49;23;24;29mg\x1b[38mh', 20);
	const styles = screen.lines[0].slice(0, 8).map((c) => c.style);
	assert.deepEqual([styles[0].bold, styles[0].fg], [true, 1]);
	assert.deepEqual([styles[1].bold, styles[1].fg], [false, 200]);
	assert.equal(styles[2].bg, '#010203');
	assert.deepEqual([styles[3].fg, styles[3].bg, styles[3].inverse], [15, 8, true]);
	assert.deepEqual([styles[4].fg, styles[4].bg, styles[4].inverse], [null, null, false]);
	assert.deepEqual([styles[5].italic, styles[5].underline, styles[5].strike], [true, true, true]);
	assert.deepEqual([styles[6].italic, styles[6].underline, styles[6].strike], [false, false, false]);
	assert.deepEqual([16, 231, 232, 255, 196].map(colourOf), ['rgb(0 0 0)', 'rgb(255 255 255)', 'rgb(8 8 8)', 'rgb(238 238 238)', 'rgb(255 0 0)']);
});

test('sequences come in pieces, and those for others leave no trace', () => {
	const text = 'a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c\x1bPq#0\x1b\\d\x1b[>0ce\x1b(0q\x1b(Bq\x1b[2 qf\x1b[?2026h\x1b#8g\x1b=h';
	const whole = shown(text, 20), pieces = new Screen(20, 4);
	for (const ch of text)
		pieces.write(ch);
	assert.equal(textOf(whole)[0], 'abcde─qfgh');
	assert.deepEqual(textOf(pieces), textOf(whole));
	pieces.write(`\x1b]${'x'.repeat(100000)}`);
	assert.ok(pieces.rest.length <= 4096);
});

test('what programs ask the terminal', () => {
	const said = [], screen = new Screen(10, 4, (text) => said.push(text));
	screen.write('\x1b[2;3H\x1b[6n\x1b[5n\x1b[c');
	assert.deepEqual(said, ['\x1b[2;3R', '\x1b[0n', '\x1b[?1;2c']);
});

test('wide characters take two columns, marks none', () => {
	assert.deepEqual(['a', 'é', '漢', '😀', '\u0301'].map(widthOf), [1, 1, 2, 2, 0]);
	const screen = shown('漢e\u0301x');
	assert.deepEqual(screen.lines[0].slice(0, 4).map((c) => c.ch), ['漢', '', 'e\u0301', 'x']);
	assert.deepEqual(textOf(shown('123456789漢')), ['123456789', '漢', '', '']);
	const stacked = shown(`a${'\u0301'.repeat(1000)}`);
	assert.ok(stacked.lines[0][0].ch.length <= 16);
});

test('another size', () => {
	const screen = shown('1\r\n2\r\n3\r\n4');
	screen.resize(5, 2);
	assert.deepEqual([textOf(screen), at(screen), screen.above.length], [['3', '4'], [1, 1], 2]);
	screen.resize(12, 3);
	assert.deepEqual([textOf(screen), screen.lines.every((l) => l.length === 12), screen.bottom], [['3', '4', ''], true, 2]);
	screen.write('\x1b[?1049hx');
	screen.resize(20, 5);
	screen.write('\x1b[?1049l');
	assert.deepEqual(textOf(screen), ['3', '4', '', '', '']);
});

test('only lines that differ are to be drawn', () => {
	const screen = shown('1\r\n2');
	screen.dirty.clear();
	screen.write('x');
	assert.deepEqual([...screen.dirty], [1]);
});

test('whatever comes, the screen stays whole', () => {
	let seed = 1;
	const next = (n) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n; };
	const pieces = ['\x1b[', '\x1b', ';', '?', '0', '7', '99999', 'H', 'J', 'K', 'L', 'M', 'P', '@', 'r', 'm', 'h', 'l', '1049', '47', 'S', 'T', 'b', '\r', '\n', '\t', '\b', 'a', '漢', '\u0301', '\x1b7', '\x1b8', '\x1bM', '\x1bc', 'X', 'd', 'G', '6'];
	const screen = new Screen(7, 5);
	for (let i = 0; i < 60000; i++) {
		screen.write(pieces[next(pieces.length)]);
		if (i % 997 === 0)
			screen.resize(1 + next(12), 1 + next(8));
		assert.ok(screen.lines.length === screen.rows && screen.x >= 0 && screen.x < screen.cols && screen.y >= 0 && screen.y < screen.rows, `after ${i}`);
		assert.ok(screen.lines.every((l) => l.length === screen.cols && l.every((c) => c?.style)), `after ${i}`);
	}
});

test('keys', () => {
	const key = (k, held = {}, app = false) => keyText({ key: k, ...held }, app);
	for (const [got, want] of [
		[key('a'), null], [key('Enter'), '\r'], [key('Backspace'), '\x7f'], [key('Tab'), '\t'], [key('Tab', { shiftKey: true }), '\x1b[Z'], [key('Escape'), '\x1b'],
		[key('c', { ctrlKey: true }), '\x03'], [key('C', { ctrlKey: true, shiftKey: true }), null], [key('[', { ctrlKey: true }), '\x1b'], [key(' ', { ctrlKey: true }), '\0'],
		[key('b', { altKey: true }), '\x1bb'], [key('ArrowUp'), '\x1b[A'], [key('ArrowUp', {}, true), '\x1bOA'], [key('ArrowLeft', { ctrlKey: true }), '\x1b[1;5D'],
		[key('Delete'), '\x1b[3~'], [key('F1'), '\x1bOP'], [key('F5'), '\x1b[15~'], [key('Shift'), null], [key('a', { metaKey: true }), null], [key('é', { ctrlKey: true }), null],
	])
		assert.equal(got, want);
	assert.equal(pasteText('a\nb\r\nc', false), 'a\rb\rc');
	assert.equal(pasteText('a\x1b[201~b', true), '\x1b[200~a[201~b\x1b[201~');
});
