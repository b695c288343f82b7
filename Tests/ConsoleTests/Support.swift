@testable import Console
import Testing

/// Reads `text`, which is JSON.
func json(_ text: String) throws -> JSONValue { try #require(JSONValue(text)) }

/// As `/status` has it; `limits` as a program tells them that knows them.
func status(limits: Bool) throws -> JSONValue {
    try json(
        """
        {
          "version": "0.1.0", "state": "running", "uptime_seconds": 273600,
          "last_reload": {"succeeded": true, "seconds": 720},
          "listeners": ["127.0.0.1:8080", "unix:/run/a"], "workers": 2,
          "clients": {"connections": 1204\(limits ? ", \"limit\": 19050" : "")},
          "memory": {"limit": 268435456, "stored": 229638144, "in_flight": 12582912},
          "store": {"responses": 6120, "resources": 5870, "unshareable": 0, "evicted": 9},
          "upstreams": [
            {"name": "wp", "in_flight": 12, "queued": 0\(limits ? ", \"slots\": 256" : ""), "servers": [
              {"server": "http://127.0.0.1:9101", "state": "up", "weight": 1, "backup": false, "in_use": 12, "idle": 20}]},
            {"name": "api", "in_flight": 44, "queued": 3\(limits ? ", \"slots\": 41" : ""), "servers": [
              {"server": "http://127.0.0.1:9102", "state": "up", "state_seconds": 100, "in_use": 41, "idle": 3},
              {"server": "http://127.0.0.1:9199", "state": "ejected", "state_seconds": 31, "reason": "503",
               "next_try_seconds": 9, "in_use": 0, "idle": 0}]}
          ],
          "fetches": [
            {"number": 8, "upstream": "wp", "key": "http a /b\\u001b[2J", "phase": "executing", "waiters": 2\(limits ? ", \"seconds\": 1, \"bytes\": 0" : "")},
            {"number": 7, "upstream": "api", "key": "http a /big?8", "phase": "streaming", "waiters": 1\(limits ? ", \"seconds\": 41, \"bytes\": 39845888" : "")}
          ]
        }
        """)
}

/// As `/status` has it with two certificates, of which one has so many seconds left.
func secureStatus(left: Int) throws -> JSONValue {
    try json(
        """
        {"tls": {
          "listeners": ["0.0.0.0:443"],
          "certificates": [
            {"certificate": "/etc/ssl/site.pem", "names": ["www.example.com", "example.com"], "not_after": 1800000000,
             "expires_seconds": 5184000},
            {"certificate": "/etc/ssl/shop.pem", "names": [], "not_after": 1790000000, "expires_seconds": \(left)}]}}
        """)
}

/// As `/status` has it with a shared tier, of which one server is failing.
let sharedStatus = """
    {"shared": {
      "engines": ["redis://10.0.0.1:6379"], "connections": 4,
      "nodes": [
        {"node": "redis://10.0.0.1:6379", "state": "ready", "connections": 3, "wanted": 3, "breakers_open": 0},
        {"node": "redis://10.0.0.2:6379", "state": "unreachable", "reason": "the engine closed the connection",
         "connections": 1, "wanted": 3, "breakers_open": 1}],
      "knows_purges": true, "purge_lag_seconds": 2, "known_purges": 12, "pending_purges": 1,
      "events": [{"event": "hit", "count": 7}, {"event": "joined", "count": 0}, {"event": "led", "count": 3}],
      "bytes_read": 1024, "bytes_written": 2097152}}
    """
