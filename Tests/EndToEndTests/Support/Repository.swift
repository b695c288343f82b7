/// The files of the repository that tests read. Only this file depends on where it stands.
enum Repository {
    static let folder = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
}
