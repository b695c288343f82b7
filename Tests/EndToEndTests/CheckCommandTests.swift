import Testing

@Suite(.scenario) struct CheckCommandTests {
    @Test func `five mistakes are five messages with line and column, and exit 78`() throws {
        let file = Setting.fileWithFiveMistakes
        let run = try Program.run("check", "--config", "@/bad.yaml", files: ["bad.yaml": file.text])
        #expect(run.exit == .code(78))
        let places = run.everything.matches(of: #/bad\.yaml:(\d+):(\d+): \S/#)
        #expect(places.compactMap { Int($0.output.1) } == file.lines)
        #expect(places.allSatisfy { (Int($0.output.2) ?? 0) > 0 })
    }

    @Test func `a good file is fine`() throws {
        let file = Setting.file([.workers(2), .headTimeout(.seconds(5))], upstream: "http://127.0.0.1:9000")
        let run = try Program.run("check", "--config", "@/good.yaml", files: ["good.yaml": file])
        #expect(run.exit == .code(0), "\(run.everything)")
    }

    @Test func `the file may be named with --config or without, but not both ways`() throws {
        let file = ["good.yaml": Setting.file([.workers(2)], upstream: "http://127.0.0.1:9000")]
        let bare = try Program.run("check", "@/good.yaml", files: file)
        #expect(bare.exit == .code(0) && bare.output.contains("good.yaml: ok"), "\(bare.everything)")
        let twice = try Program.run("check", "@/good.yaml", "--config", "@/good.yaml", files: file)
        #expect(twice.exit == .code(64), "\(twice.everything)")
    }

    @Test func `text that is not YAML is 78 with its place`() throws {
        let run = try Program.run("check", "--config", "@/bad.yaml", files: ["bad.yaml": "workers: [1, 2\nlisten: {\n"])
        #expect(run.exit == .code(78))
        #expect(run.everything.contains(#/bad\.yaml:\d+:\d+: /#))
    }

    @Test func `serve refuses what check refuses`() throws {
        let file = Setting.fileWithFiveMistakes
        let run = try Program.run("serve", "--listen", "127.0.0.1:0", "--config", "@/bad.yaml", files: ["bad.yaml": file.text])
        #expect(run.exit == .code(78))
        #expect(!run.errors.contains("listening on"))
    }

    @Test func `a file that is not there is 78 when it was named`() throws {
        #expect(try Program.run("check", "--config", "@/none.yaml").exit == .code(78))
    }
}
