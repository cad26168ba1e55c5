/**
 * Locks of a holdfast server, for Lucee 5 and Adobe ColdFusion 2018 or later. Copy this file.
 *
 *   client = new Holdfast( "http://127.0.0.1:7420 http://127.0.0.1:7421" );
 *
 *   client.withLock( "orders/42", 30, 60, function( lease ) {
 *       for ( var order in orders ) {
 *           lease.check();                    // throws holdfast.lost once the lease is lost
 *           book( order, lease.token() );     // and the resource refuses a late holder
 *       }
 *   } );
 *
 * The resource is a database: begin its transaction with
 *
 *   queryExecute( "UPDATE seats SET fence = :t WHERE id = :id AND fence <= :t",
 *       { t: { value: lease.token(), cfsqltype: "bigint" }, id: seat }, { result: "advanced" } );
 *   if ( advanced.recordCount == 0 ) throw( type = "holdfast.stale" );
 *
 * Errors have the type "holdfast." and a code of docs/reference/http.md, such as holdfast.lock-held;
 * holdfast.unavailable says that no server has answered. docs/clients.md has what is
 * guaranteed, and the rules that this file keeps.
 */
component {

	variables.again = [ 429, 502, 503, 504 ]; // the same request may succeed, here or at another server

	/**
	 * Makes a client of the servers of one store. Spaces separate their URLs. Others see the
	 * holder as it says: host, pid, program and label.
	 */
	public Holdfast function init( required string urls, string token = "", struct holder = {} ) {
		variables.urls = listToArray( arguments.urls, " " );
		for ( var url in variables.urls.len() ? variables.urls : [ arguments.urls ] ) {
			if ( !reFind( "^https?://[^/]", url ) ) throw( type = "holdfast.invalid", message = """#url#"" is not a URL of a holdfast server: want http://HOST:PORT" );
		}
		variables.token = arguments.token;
		variables.at = 1; // the server that is asked first
		variables.reached = false; // a server has taken a request
		var process = createObject( "java", "java.lang.management.ManagementFactory" ).getRuntimeMXBean().getName(); // pid@host
		variables.holder = { "host": listLast( process, "@" ), "pid": val( process ), "program": "cfml" };
		structAppend( variables.holder, arguments.holder );
		return this;
	}

	/** Does work under a lock, and returns what it returns. Times are in seconds. */
	public any function withLock( required string name, required numeric ttl, required numeric wait, required function work ) {
		var lease = lock( name, ttl, wait );
		try {
			var result = work( lease );
			lease.check();
			return isNull( result ) ? "" : result;
		} finally {
			lease.release();
		}
	}

	/** Takes a lock, and keeps it until the lease is released, or lost. */
	public HoldfastLease function lock( required string name, required numeric ttl, required numeric wait ) {
		var key = createUUID();
		try {
			var turn = turnAt( "/v1/leases", { "name": name }, key, ttl, wait );
		} catch ( any failed ) {
			try { // leave the queue, and give back what may have been granted without our knowing
				if ( variables.reached ) ask( "POST", "/v1/leases/release", { "name": name }, key, 2000, 2000 );
			} catch ( any ends ) {} // by itself
			rethrow;
		}
		return new HoldfastLease( this, turn );
	}

	/**
	 * Does work unless that was done under this key, and returns its result either way. If
	 * the work throws, the next caller does it.
	 */
	public any function once( required string key, required numeric ttl, required numeric wait, required function work ) {
		var path = "/v1/once/" & replace( urlEncodedFormat( key ), "+", "%20", "all" );
		var turn = turnAt( path, {}, createUUID(), ttl, wait );
		if ( turn.status == 200 ) return turn.answer.result;
		var lease = new HoldfastLease( this, turn );
		try {
			var result = work( lease );
			lease.check();
			ask( "PUT", path & "/result", { "lease_id": lease.id(), "result": result } );
			return result;
		} catch ( any failed ) {
			try {
				ask( "POST", path & "/fail", { "lease_id": lease.id() }, "", 2000, 2000 );
			} catch ( any ends ) {} // by itself
			rethrow;
		} finally {
			lease.leave();
		}
	}

	private struct function turnAt( required string path, required struct body, required string key, required numeric ttl, required numeric wait ) {
		if ( ttl < 1 || ttl > 3600 ) throw( type = "holdfast.invalid", message = "a ttl of #ttl#: want seconds, from 1 to 3600; a lease is renewed for as long as the work takes" );
		body[ "holder" ] = variables.holder;
		var until = clock() + wait * 1000;
		while ( true ) {
			// A short wait at a time: the deadline counts from before the request.
			var left = max( 0, until - clock() );
			var piece = min( left, ttl * 1000 / 3 );
			body[ "ttl_ms" ] = int( ttl * 1000 );
			body[ "wait_ms" ] = int( piece );
			var turn = ask( "POST", path, body, key, piece + 15000, piece + 5000, piece < left );
			if ( turn.status != 202 ) return turn;
			// We have a place in the queue, which the next request with this key keeps.
		}
	}

	/**
	 * Asks one server after the other until one has answered. Each request may be repeated:
	 * the servers know it by the lease ID, or by its key. If all are asked without an answer, and
	 * none has ever given one, that is an error at once: most likely a URL is wrong. Times are in
	 * milliseconds.
	 */
	public struct function ask( required string method, required string path, required struct body, string key = "", numeric within = 15000, numeric patience = 5000, boolean comesBack = false ) {
		var until = clock() + within;
		var asked = 0;
		// A fencing token is text here, and a number there.
		var json = reReplace( serializeJSON( body ), """fencing_token"":""([0-9]+)""", """fencing_token"":\1" );
		while ( true ) {
			var before = clock();
			cfhttp( url = variables.urls[ variables.at ] & path, method = method, timeout = max( 1, ceiling( min( patience, until - before ) / 1000 ) ), result = "local.http", throwonerror = false ) {
				cfhttpparam( type = "header", name = "Content-Type", value = "application/json" );
				if ( len( key ) ) cfhttpparam( type = "header", name = "Idempotency-Key", value = key );
				// Without this a wait that ends without the lock leaves no place in the queue.
				if ( comesBack ) cfhttpparam( type = "header", name = "Prefer", value = "respond-async" );
				if ( len( variables.token ) ) cfhttpparam( type = "header", name = "Authorization", value = "Bearer " & variables.token );
				cfhttpparam( type = "body", value = json );
			}
			var status = val( http.statusCode );
			var answer = isJSON( http.fileContent ) ? deserializeJSON( http.fileContent ) : {};
			if ( status >= 200 && status < 300 ) return { "before": before, "status": status, "answer": answer };
			variables.reached = variables.reached || status != 0;
			asked++;
			if ( status != 0 && !variables.again.find( status ) ) {
				throw( type = "holdfast." & ( answer.code ?: "http-#status#" ), message = answer.detail ?: "status #status#" );
			}
			variables.at = variables.at mod arrayLen( variables.urls ) + 1;
			if ( clock() + 200 >= until || !variables.reached && asked >= arrayLen( variables.urls ) ) {
				throw( type = "holdfast.unavailable", message = "no server has answered #path#: #http.statusCode#; asked: #arrayToList( variables.urls, ' ' )#" );
			}
			sleep( 200 );
		}
	}

	/** Milliseconds of a clock that nobody sets. */
	public numeric function clock() {
		return createObject( "java", "java.lang.System" ).nanoTime() / 1000000;
	}

}
