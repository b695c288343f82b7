package import Libevent
import Testing

package let second: Int64 = 1_000_000_000
package let millisecond: Int64 = 1_000_000

/// Runs a loop on this thread until `body`'s work stops it. A test that forgets to is stopped after 30 seconds, and
/// fails.
package func onLoop(_ body: (EventLoop) throws -> Void) throws {
    let loop = try EventLoop()
    loop.schedule(after: 30 * second) { [unowned loop] in
        Issue.record("nothing stopped the loop")
        loop.stop()
    }
    try body(loop)
    loop.run()
    loop.finish()
}
