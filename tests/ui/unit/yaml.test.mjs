// YAML for people. Another program reads it back where there is one: see page.py.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toYaml } from '../../../ui/yaml.mjs';

test('maps, lists and scalars', () => {
	assert.equal(toYaml({ a: 1, b: { c: [true, null, 'x'], d: {} , e: [] }, f: [{ g: 'h', i: [{ j: 'k' }] }] }), [
		'a: 1', 'b:', '  c:', '  - true', '  - null', '  - x', '  d: {}', '  e: []', 'f:', '- g: h', '  i:', '  - j: k', ''].join('\n'));
	assert.equal(toYaml({}), '{}\n');
	assert.equal(toYaml('x'), 'x\n');
});

test('a text that YAML would take for something else is quoted', () => {
	for (const text of ['', 'true', 'No', '~', '12', '1e3', '0x1', '2026-01-01T00:00:00Z', '- a', 'a: b', 'a #b', '[a', '"', 'x ', ' x', '*a', '<b>', '\u0000', 'a:'])
		assert.equal(toYaml({ t: text }), `t: ${JSON.stringify(text)}\n`, text);
	for (const text of ['a', 'a-b.c/d', 'Pod is Ready', 'a_1', '/tmp/x'])
		assert.equal(toYaml({ t: text }), `t: ${text}\n`);
	assert.equal(toYaml({ 'a: b': 1 }), '"a: b": 1\n');
});

test('lines stand as a block', () => {
	assert.equal(toYaml({ t: 'a\n b\n\nc' }), 't: |-\n  a\n   b\n\n  c\n');
	assert.equal(toYaml({ t: 'a\nb\n' }), 't: |\n  a\n  b\n');
	assert.equal(toYaml(['a\nb\n\n']), '- |+\n  a\n  b\n\n');
	assert.equal(toYaml({ t: ' a\nb' }), 't: " a\\nb"\n');
	assert.equal(toYaml({ t: 'a \nb' }), 't: "a \\nb"\n');
});

test('depth has a ceiling', () => {
	let deep = {};
	for (let i = 0; i < 1000; i++)
		deep = { a: deep };
	assert.match(toYaml(deep), /…\n$/);
});
