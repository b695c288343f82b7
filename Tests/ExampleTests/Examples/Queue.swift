import Coalescing

/// Two operations at a time, whatever they are: thumbnails are shared by all who want the same one, sweeps by nobody.
struct Photos {
    let queue = OperationQueueManager<String>(maxConcurrent: 2)

    func thumbnail(of photo: String, from renderer: Renderer) async throws -> Thumbnail {
        try await queue.value(for: photo, priority: .high) { try await renderer.thumbnail(of: photo) }
    }

    func sweep(_ disk: Disk) {
        _ = queue.enqueue(plain: PlainOperation { sweep in disk.sweep { sweep.finish() } }, priority: .background)
    }
}
