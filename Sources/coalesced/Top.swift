import ArgumentParser
import Console
import Libevent

/// `coalesced top`: shows the activity of a running proxy, refreshed once a second.
struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Watch what a running proxy does.",
        discussion: """
            Rates, shares, upstreams and fetches on one screen, once a second, until interrupted. Where standard output is no \
            terminal, or one that moves no cursor (TERM=dumb), it ends after the first second, as with --once.
            """
    )

    @OptionGroup var admin: AdminOption
    @Flag(help: "Print one second's figures and exit.") var once = false

    func run() throws {
        let isScreen = !once && System.environment("TERM") != "dumb"
        var before: TopSample?
        while true {
            let screen = try sample()
            // Read each time, since the window's size may have changed.
            if isScreen, let terminal = System.terminalSize {
                let lines = TopScreen(screen, since: before).lines(columns: terminal.columns, rows: terminal.rows - 1)
                // Cursor home, then the lines, without flicker. Each line first erases the one it covers; erasing after
                // a line as wide as the terminal would remove its last character. The last line erases everything below
                // it.
                try output("\u{1B}[H\(lines.map { "\u{1B}[K\($0)\n" }.joined())\u{1B}[J")
            } else if before != nil {
                let columns = System.terminalSize?.columns ?? .max
                let lines = TopScreen(screen, since: before).lines(columns: columns, rows: .max)
                return try output(lines.map { "\($0)\n" }.joined())
            }
            before = screen
            try pause()
        }
    }

    private func sample() throws -> TopSample {
        let (status, metrics) = (try admin.ask("GET", "/status"), try admin.ask("GET", "/metrics"))
        let time = Double(System.monotonicMicroseconds()) / 1e6
        return TopSample(status: JSONValue(status) ?? .null, metrics: MetricsPage(metrics), time: time)
    }

    private func pause() throws {
        let loop = try EventLoop()
        loop.schedule(after: 1_000_000_000) { loop.stop() }
        loop.run()
    }
}
