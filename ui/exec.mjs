// A command in a container, over a WebSocket with the channels of the cluster's protocol: the first byte of a message tells which.
// Source: the Kubernetes API reference, exec; v5.channel.k8s.io.

const PROTOCOL = 'v5.channel.k8s.io';
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const STDIN = 0, STDOUT = 1, STDERR = 2, ERROR = 3, RESIZE = 4;
const BUFFERED_MAX = 1 << 20; // bytes not sent yet; a paste beyond that is refused

/** A login shell, the best there is. */
export const SHELL = ['sh', '-c', 'TERM=xterm-256color; export TERM; if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi'];

export function execPath(namespaceName, pod, container, command) {
	const query = new URLSearchParams({ container, stdin: 'true', stdout: 'true', tty: 'true' });
	for (const word of command)
		query.append('command', word);
	return `/api/v1/namespaces/${encodeURIComponent(namespaceName)}/pods/${encodeURIComponent(pod)}/exec?${query}`;
}

/** A browser's WebSocket can carry a token in no other way than as a protocol. */
export function protocolsOf(token) {
	const bytes = new TextEncoder().encode(token);
	const text = btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
	return [PROTOCOL, TOKEN_PROTOCOL + text];
}

/** What the Status at the end says to people: how the command ended. */
export function endText(status) {
	if (status?.status === 'Success')
		return 'The shell has ended.';
	const code = status?.details?.causes?.find((c) => c.reason === 'ExitCode')?.message;
	return code ? `The shell has ended with exit code ${code}.` : status?.message || 'The connection has ended.';
}

export class Exec {
	/** opened(); printed(bytes); ended(status or null). Socket: the browser's, or a test's. */
	constructor(url, token, { opened, printed, ended }, Socket = WebSocket) {
		this.status = null;
		this.wasOpen = false;
		this.socket = new Socket(url, protocolsOf(token));
		this.socket.binaryType = 'arraybuffer';
		this.socket.addEventListener('open', () => {
			this.wasOpen = true;
			opened();
		});
		this.socket.addEventListener('message', ({ data }) => this.take(new Uint8Array(data), printed));
		this.socket.addEventListener('close', () => ended(this.status));
	}

	take(bytes, printed) {
		const channel = bytes[0], rest = bytes.subarray(1);
		if (channel === STDOUT || channel === STDERR)
			printed(rest);
		if (channel === ERROR && rest.length > 0)
			this.status = readStatus(rest);
	}

	/** False when so much waits that the text was not taken. */
	type(text) {
		const bytes = new TextEncoder().encode(text);
		if (this.socket.readyState !== 1 || this.socket.bufferedAmount + bytes.length > BUFFERED_MAX)
			return false;
		this.send(STDIN, bytes);
		return true;
	}

	resize(cols, rows) {
		if (this.socket.readyState === 1)
			this.send(RESIZE, new TextEncoder().encode(JSON.stringify({ Width: cols, Height: rows })));
	}

	send(channel, bytes) {
		const message = new Uint8Array(bytes.length + 1);
		message[0] = channel;
		message.set(bytes, 1);
		this.socket.send(message);
	}

	close() {
		this.socket.close();
	}
}

function readStatus(bytes) {
	try {
		return JSON.parse(new TextDecoder().decode(bytes));
	} catch {
		return { message: 'The server\'s last words cannot be read.' };
	}
}
