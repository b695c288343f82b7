internal import CLibevent

/// Lets `malloc` keep up to 1 MiB of freed memory at the end of each of its heaps, of which every thread has one. By itself it gives back to the kernel
/// what exceeds 128 KiB, and then a body that passes through has its pieces mapped, faulted in and zeroed anew, page by page.
///
/// To be called before there are threads. What is larger is mapped by itself and goes back at once.
public func keepFreedMemory() {
    // One without the other would keep the first from adapting; a C library that knows neither says so, and nothing is lost.
    _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
    _ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
}
