// Asking the API: whose token goes along, and what an error says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Api, takeToken } from '../../../ui/api.mjs';

function storage() {
	const kept = new Map();
	return { kept, getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) };
}

/** A fetch that remembers what it was asked and answers that. */
function answering(status, body) {
	const asked = [];
	const fetch = async (path, options) => {
		asked.push({ path, ...options });
		return new Response(body, { status });
	};
	return { asked, fetch };
}

test('a token in the address is kept and taken out of the address', () => {
	const kept = storage(), replaced = [];
	const history = { replaceState: (...a) => replaced.push(a[2]) };
	const location = { hash: '#token=a.b-c_d', pathname: '/ui/', search: '?x=1' };
	assert.equal(takeToken(location, history, kept), 'a.b-c_d');
	assert.deepEqual(replaced, ['/ui/?x=1']);
	assert.equal(takeToken({ ...location, hash: '' }, history, kept), 'a.b-c_d');
	assert.deepEqual(replaced, ['/ui/?x=1']);
});

test('an empty token in the address is taken out, and is none', () => {
	const replaced = [];
	const history = { replaceState: (...a) => replaced.push(a[2]) };
	assert.equal(takeToken({ hash: '#token=', pathname: '/ui/', search: '' }, history, storage()), '');
	assert.deepEqual(replaced, ['/ui/']);
});

test('requests carry the token, the type of their body, and no caching', async () => {
	const { asked, fetch } = answering(200, '{"kind":"Sandbox"}');
	const api = new Api('secret', fetch);
	assert.deepEqual(await api.merge('/p', { spec: { operatingMode: 'Running' } }), { kind: 'Sandbox' });
	assert.equal(asked[0].method, 'PATCH');
	assert.equal(asked[0].headers.Authorization, 'Bearer secret');
	assert.equal(asked[0].headers['Content-Type'], 'application/merge-patch+json');
	assert.equal(asked[0].body, '{"spec":{"operatingMode":"Running"}}');
	assert.equal(asked[0].cache, 'no-store');
});

test('deleting names the very object that was seen', async () => {
	const { asked, fetch } = answering(200, '{}');
	await new Api('', fetch).delete('/p', 'uid-1');
	assert.deepEqual(JSON.parse(asked[0].body).preconditions, { uid: 'uid-1' });
	assert.equal(asked[0].headers.Authorization, undefined);
});

test('an error is the Status that came, or the text that came instead', async () => {
	const status = JSON.stringify({ kind: 'Status', reason: 'Forbidden', message: 'you may not' });
	for (const [code, body, want] of [
		[403, status, { status: 403, reason: 'Forbidden', message: 'you may not' }],
		[429, 'Too many requests\n', { status: 429, reason: '', message: 'Too many requests' }],
		[502, '', { status: 502, reason: '', message: 'HTTP 502' }],
		[500, '{"kind":"Other"}', { status: 500, reason: '', message: '{"kind":"Other"}' }],
	]) {
		const { fetch } = answering(code, body);
		await assert.rejects(new Api('', fetch).get('/p'), (error) => {
			assert.deepEqual({ status: error.status, reason: error.reason, message: error.message }, want);
			return true;
		});
	}
});
