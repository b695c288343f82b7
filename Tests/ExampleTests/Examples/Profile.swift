import Coalescing

/// A user's profile: fetched once for all who ask at the same time, and kept.
struct Profiles {
    let server: ProfileServer
    let cache = Cache<Int, Profile>()
    let inFlight = OperationQueueManager<Int>()

    func profile(of user: Int) async throws -> Profile {
        try await inFlight.value(for: user, unless: { cache[user] }) {
            let profile = try await server.profile(of: user)
            cache[user] = profile
            return profile
        }
    }
}
