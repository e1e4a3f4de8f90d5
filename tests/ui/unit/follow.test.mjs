// A collection kept up to date, against a server that answers from a script.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../ui/api.mjs';
import { eventsOf, Follower, waitMs } from '../../../ui/follow.mjs';

const object = (name, version, more = {}) => ({ metadata: { namespace: 'ns', name, resourceVersion: String(version), managedFields: [1], ...more } });
const list = (version, objects, next) => ({ metadata: { resourceVersion: String(version), continue: next }, items: objects });
const stream = (...pieces) => ({ body: new ReadableStream({
	start(controller) {
		for (const piece of pieces)
			controller.enqueue(new TextEncoder().encode(piece));
		controller.close();
	},
}) });
const line = (type, o) => `${JSON.stringify({ type, object: o })}\n`;

/** Runs a follower over these answers (functions throw or return), and stops it when they are used up. */
async function follow(answers) {
	const seen = { asked: [], changed: [], told: [], slept: [] };
	const next = async (path) => {
		seen.asked.push(path);
		const answer = answers.shift();
		if (answer === undefined) {
			follower.stop();
			throw new Error('over');
		}
		return typeof answer === 'function' ? answer() : answer;
	};
	const follower = new Follower({ get: next, open: (method, path) => next(path) }, '/things', {
		changed: (keys) => seen.changed.push([...keys].sort()),
		told: (state, error) => seen.told.push(error ? `${state} ${error.message}` : state),
		sleep: async (ms) => seen.slept.push(ms),
	});
	await follower.run();
	return { ...seen, items: follower.items };
}

const parametersOf = (path) => Object.fromEntries(new URLSearchParams(path.split('?')[1]));

test('lists in pages, watches from there, and keeps what came', async () => {
	const { asked, changed, items, told } = await follow([
		list(5, [object('a', 1)], 'more'),
		list(5, [object('b', 2)]),
		stream(line('MODIFIED', object('a', 6)), line('ADDED', object('c', 7)), line('DELETED', object('b', 8))),
	]);
	assert.deepEqual(asked.map(parametersOf), [
		{ limit: '500' }, { limit: '500', continue: 'more' },
		{ watch: '1', allowWatchBookmarks: 'true', resourceVersion: '5', timeoutSeconds: '300' },
		{ watch: '1', allowWatchBookmarks: 'true', resourceVersion: '8', timeoutSeconds: '300' },
	]);
	assert.deepEqual(changed, [['ns/a', 'ns/b'], ['ns/a'], ['ns/c'], ['ns/b']]);
	assert.deepEqual([...items.keys()], ['ns/a', 'ns/c']);
	assert.equal(items.get('ns/a').metadata.resourceVersion, '6');
	assert.equal(items.get('ns/a').metadata.managedFields, undefined);
	assert.deepEqual(told.slice(0, 2), ['loading', 'live']);
});

test('a bookmark moves the version and nothing else', async () => {
	const { asked, changed } = await follow([
		list(5, []), stream(line('BOOKMARK', { metadata: { resourceVersion: '90' } })),
	]);
	assert.equal(parametersOf(asked.at(-1)).resourceVersion, '90');
	assert.deepEqual(changed, [[]]);
});

test('what the server has forgotten is listed anew, at once, and only the difference is told', async () => {
	const { asked, changed, items, slept } = await follow([
		list(5, [object('a', 1), object('b', 2), object('c', 3)]),
		stream(line('ERROR', { code: 410, reason: 'Expired', message: 'too old' })),
		list(50, [object('a', 1), object('b', 20), object('d', 4)]),
	]);
	assert.equal(asked.length, 4);
	assert.deepEqual(slept, []);
	assert.deepEqual(changed, [['ns/a', 'ns/b', 'ns/c'], ['ns/b', 'ns/c', 'ns/d']]);
	assert.deepEqual([...items.keys()].sort(), ['ns/a', 'ns/b', 'ns/d']);
});

test('one that says so again and again is asked more slowly', async () => {
	const gone = () => stream(line('ERROR', { code: 410, reason: 'Expired', message: 'too old' }));
	const { slept } = await follow([list(5, []), gone, list(6, []), gone, list(7, []), gone, list(8, [])]);
	assert.equal(slept.length, 2);
	assert.ok(slept[1] > 0);
});

test('failures are waited after, longer each time, and the watch goes on where it was', async () => {
	const fail = (status) => () => { throw new ApiError(status, '', `no ${status}`); };
	const { asked, slept, told } = await follow([list(5, [object('a', 1)]), fail(500), fail(503), stream(line('ADDED', object('b', 9)))]);
	assert.deepEqual(told, ['loading', 'live', 'waiting no 500', 'live', 'waiting no 503', 'live', 'live']);
	assert.equal(slept.length, 2);
	assert.ok(slept[1] >= 500 && slept[0] <= 500);
	assert.equal(parametersOf(asked[3]).resourceVersion, '5');
});

test('events are lines, however the bytes come', async () => {
	const text = line('ADDED', object('ä', 1)) + line('ADDED', object('b', 2));
	const bytes = new TextEncoder().encode(text);
	const body = new ReadableStream({
		start(controller) {
			for (const byte of bytes)
				controller.enqueue(new Uint8Array([byte]));
			controller.close();
		},
	});
	const names = [];
	for await (const event of eventsOf(body))
		names.push(event.object.metadata.name);
	assert.deepEqual(names, ['ä', 'b']);
});

test('waits double, stay under their ceiling, and differ', () => {
	assert.equal(waitMs(1, () => 1), 500);
	assert.equal(waitMs(1, () => 0), 250);
	assert.equal(waitMs(3, () => 1), 2000);
	assert.equal(waitMs(1000, () => 1), 30000);
});
