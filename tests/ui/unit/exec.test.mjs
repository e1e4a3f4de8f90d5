// A command in a container: what is sent and what is taken, over a socket of the test's own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endText, Exec, execPath, protocolsOf } from '../../../ui/exec.mjs';

class Socket extends EventTarget {
	constructor(url, protocols) {
		super();
		Object.assign(this, { url, protocols, readyState: 0, bufferedAmount: 0, sent: [] });
	}
	send(bytes) { this.sent.push([...bytes]); }
	close() { this.dispatchEvent(new Event('close')); }
	open() { this.readyState = 1; this.dispatchEvent(new Event('open')); }
	say(channel, text) {
		const event = new Event('message');
		event.data = Uint8Array.from([channel, ...new TextEncoder().encode(text)]).buffer;
		this.dispatchEvent(event);
	}
}

function begin() {
	const seen = [];
	const exec = new Exec('wss://x/exec', 't', {
		opened: () => seen.push('opened'), printed: (bytes) => seen.push(new TextDecoder().decode(bytes)), ended: (status) => seen.push(['ended', status]),
	}, Socket);
	return { exec, seen, socket: exec.socket };
}

test('the path names the command word by word, and whatever a name holds', () => {
	assert.equal(execPath('a/b', 'p', 'main', ['sh', '-c', 'x y&z']),
		'/api/v1/namespaces/a%2Fb/pods/p/exec?container=main&stdin=true&stdout=true&tty=true&command=sh&command=-c&command=x+y%26z');
});

test('the token goes along as a protocol, without what protocols may not have', () => {
	const [first, second] = protocolsOf('a.b~\u00ff?>');
	assert.equal(first, 'v5.channel.k8s.io');
	assert.match(second, /^base64url\.bearer\.authorization\.k8s\.io\.[A-Za-z0-9_-]+$/);
	assert.equal(Buffer.from(second.split('.').at(-1), 'base64url').toString(), 'a.b~\u00ff?>');
});

test('channels both ways', () => {
	const { exec, seen, socket } = begin();
	assert.equal(exec.type('early'), false);
	socket.open();
	socket.say(1, 'out');
	socket.say(2, 'err');
	socket.say(9, 'nobody');
	assert.ok(exec.type('ä'));
	exec.resize(80, 24);
	assert.deepEqual(socket.sent, [[0, 0xc3, 0xa4], [4, ...Buffer.from('{"Width":80,"Height":24}')]]);
	socket.bufferedAmount = 1 << 20;
	assert.equal(exec.type('much'), false);
	socket.say(3, '{"status":"Success"}');
	exec.close();
	assert.deepEqual(seen, ['opened', 'out', 'err', ['ended', { status: 'Success' }]]);
});

test('how it ended', () => {
	assert.equal(endText({ status: 'Success' }), 'The shell has ended.');
	assert.equal(endText({ status: 'Failure', reason: 'NonZeroExitCode', details: { causes: [{ reason: 'ExitCode', message: '3' }] } }), 'The shell has ended with exit code 3.');
	assert.equal(endText({ status: 'Failure', message: 'no such container' }), 'no such container');
	assert.equal(endText(null), 'The connection has ended.');
});
