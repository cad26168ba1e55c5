/** A lock that is held. It is renewed in a thread. Holdfast.cfc makes it. */
component {

	public HoldfastLease function init( required Holdfast client, required struct turn ) {
		variables.client = client;
		variables.answer = turn.answer;
		variables.ended = false;
		trust( turn );
		// The thread sees the variables of this component. What it is given would be copied.
		thread name="holdfast-#turn.answer.lease_id#" action="run" {
			renewUntilEnded();
		}
		return this;
	}

	public string function id() { return variables.answer.lease_id; }

	/** The fencing token, as text: it may have more digits than a double keeps in CFML. */
	public string function token() { return variables.answer.fencing_token_str; }

	// From before the request was sent, so that the store counts longer than we do. A tenth
	// is for clocks that are slewed, and a twentieth for work to stop in.
	private void function trust( required struct turn ) {
		variables.deadline = turn.before + turn.answer.expires_in_ms * 0.85;
	}

	/** Throws holdfast.lost if the lease is lost. Call it between steps: nothing interrupts a request of CFML. */
	public void function check() {
		if ( variables.client.clock() >= variables.deadline ) {
			throw( type = "holdfast.lost", message = "the lease of ""#variables.answer.name#"" is lost" );
		}
	}

	public void function renewUntilEnded() {
		var due = variables.client.clock() + variables.answer.ttl_ms / 3;
		while ( !variables.ended && variables.client.clock() < variables.deadline ) {
			sleep( 100 );
			if ( variables.ended || variables.client.clock() < due ) continue;
			try {
				var body = { "name": variables.answer.name, "lease_id": id(), "fencing_token": token(), "ttl_ms": variables.answer.ttl_ms };
				trust( variables.client.ask( "POST", "/v1/leases/renew", body, "", variables.deadline - variables.client.clock(), variables.answer.ttl_ms / 6 ) );
				due = variables.client.clock() + variables.answer.ttl_ms / 3;
			} catch ( "holdfast.lost" gone ) {
				variables.deadline = 0;
			} catch ( "holdfast.broken" gone ) {
				variables.deadline = 0;
			} catch ( any failed ) {} // asked again until the deadline
		}
	}

	/** Stops renewing the lease, and leaves it as it is. */
	public void function leave() { variables.ended = true; }

	/** Gives the lock back; a lease that is not given back ends by itself. */
	public void function release() {
		leave();
		try {
			variables.client.ask( "POST", "/v1/leases/release", { "name": variables.answer.name, "lease_id": id() }, "", 5000, 5000 );
		} catch ( any ends ) {} // by itself, or it has ended
	}

}
