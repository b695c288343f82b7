import Bytes
import RawStructuredFieldValues

/// `CDN-Cache-Control` and its kind (RFC 9213): dictionary structured fields that replace both `Cache-Control` and
/// `Expires` for the caches they target.
enum TargetedCacheControl {
    /// The directives of the first targeted field that is present, parses and is not empty; `nil` if there is none.
    static func directives(of fields: FieldView, policy: borrowing CachingPolicy) -> ResponseDirectives? {
        if fields.present.isDisjoint(with: policy.targetedKnown) { return nil }
        for target in policy.targetedFields {
            guard let dictionary = dictionary(named: target, in: fields) else { continue }
            var directives = ResponseDirectives()
            for (key, value) in dictionary { read(key, value, into: &directives) }
            return directives
        }
        return nil
    }

    /// The field names in qualified `private` and `no-cache` directives of the field that `directives` selects, in the
    /// same order and within the same bound.
    static func fieldLists(in fields: FieldView, targets: [ByteSlice]) -> [ByteSlice] {
        for target in targets {
            guard let dictionary = dictionary(named: target, in: fields) else { continue }
            var (lists, bound): ([ByteSlice], FieldNameBound) = ([], FieldNameBound())
            for (key, value) in dictionary where key == "private" || key == "no-cache" {
                guard case .item(let item) = value, case .string(let text) = item.rfc9651BareItem else { continue }
                let list = ByteSlice(text)
                guard bound.takes(list.span) else { break }
                lists.append(list)
            }
            return lists
        }
        return []
    }

    /// §2.1: a field that is empty or does not parse counts as absent.
    private static func dictionary(named name: ByteSlice, in fields: FieldView) -> OrderedMap<String, ItemOrInnerList>?
    {
        guard let dictionary = StructuredFields.dictionary(fields, named: name.span), dictionary.count > 0 else {
            return nil
        }
        return dictionary
    }

    /// A value of a type that its directive cannot have is not consumed (§2.1): a directive that forbids something
    /// still counts as present; a lifetime counts as invalid.
    private static func read(_ key: String, _ value: ItemOrInnerList, into directives: inout ResponseDirectives) {
        let name = Array(key.utf8)
        let none: [UInt8] = []
        guard case .item(let item) = value else {
            return directives.read(name: name.span, argument: .text(isSound: false), text: none.span)
        }
        switch item.rfc9651BareItem {
        case .bool(let isSet):
            if isSet { directives.read(name: name.span, argument: .none, text: none.span) }
        case .integer(let number):
            let text = Array(String(number).utf8)
            // A number is no field name.
            let isDuration = key != "private" && key != "no-cache"
            directives.read(name: name.span, argument: .text(isSound: isDuration), text: text.span)
        case .string(let argument):
            let text = Array(argument.utf8)
            let isNumber = DeltaSeconds.parse(text.span) != nil
            directives.read(name: name.span, argument: .text(isSound: !isNumber), text: text.span)
        case .token, .decimal, .undecodedByteSequence, .date, .displayString:
            directives.read(name: name.span, argument: .text(isSound: false), text: none.span)
        }
    }
}
