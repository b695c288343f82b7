/// The functions that the engine runs for the machines that share it: a library in Lua (Redis 7, Valkey).
///
/// The version is part of all its names, so that machines of two versions can share an engine while they are replaced.
/// A change of the text needs the next version: a test has the digest of the text.
///
/// Plain commands do the rest. A leader appends content to a stream that only it writes to (`XADD`), and followers read
/// the lease and the stream (`GET`, `XRANGE`). A function would cost the engine three to six times as much, since Lua
/// copies all bytes.
package enum TierFunctions {
    /// The name under which the engine keeps the functions.
    package static let library: StaticString = "coalesced1"

    /// The library, as `FUNCTION LOAD` takes it.
    package static let text: StaticString = """
        #!lua name=coalesced1
        -- The functions of the tier that several machines share. Each runs alone: nothing else happens in the engine between
        -- two of its commands. All times are the engine's, in milliseconds.
        --
        -- P:{h}:m            hash: `vary`, and a record for each variant, `r:<variant>`
        -- P:{h}:l:<variant>  string: the lease: the token of the leader; `-`: each machine fetches for itself; `--`: each request
        -- P:{h}:b:<token>    stream: the response that the leader with this token fetches
        -- P:purge            stream: the purges

        -- The most variants of one resource, as in a machine's memory.
        local MOST_VARIANTS = 500
        -- The longest lease. One that ends later, or never, is none of a machine's.
        local LONGEST_LEASE = 60000
        -- How often a new record counts as having been read.
        local HEAD_START = 10
        -- The greatest time and length that a machine believes: 2^52.
        local GREATEST = 4503599627370496
        -- The id of the entry that closes a stream: the engine adds none after it.
        local CLOSING = '18446744073709551615-18446744073709551615'
        -- A stream outlives its lease, or its record, by so many leases, in which its readers can finish.
        local GRACE = 4

        local function now()
          local time = redis.call('TIME')
          return time[1] * 1000 + math.floor(time[2] / 1000)
        end

        -- A number without exponent.
        local function digits(number) return string.format('%.0f', number) end

        -- The key of a stream, in the slot of `m`. It cannot be declared: only the record names it.
        local function stream(m, token) return string.sub(m, 1, -2) .. 'b:' .. token end

        -- A record is `<token> <length> <at> <fresh> <expires>`: its stream, the length of its body, when its head came, and
        -- until when it is fresh and of use. After a 304, a space and the new head follow. `nil` if it is none.
        local function parse(text)
          if not text then return nil end
          local token, length, at, fresh, expires, head =
            string.match(text, '^([%w_.-]+) (%d+) (%d+) (%d+) (%d+) ?(.*)$')
          if not token then return nil end
          local record = {token = token, length = tonumber(length), at = tonumber(at), fresh = tonumber(fresh),
            expires = tonumber(expires), head = head}
          if math.max(record.length, record.at, record.fresh, record.expires) > GREATEST then return nil end
          return record
        end

        local function write(m, field, token, length, at, fresh, lifetime, head)
          local text = table.concat({token, digits(length), digits(at), digits(at + fresh), digits(at + lifetime)}, ' ')
          if head then text = text .. ' ' .. head end
          redis.call('HSET', m, field, text)
          if redis.call('PEXPIRETIME', m) < at + lifetime then redis.call('PEXPIREAT', m, digits(at + lifetime)) end
        end

        -- Drops the expired variants of a resource that has too many, or else the one that expires first.
        local function prune(m, time)
          if redis.call('HLEN', m) <= MOST_VARIANTS + 1 then return end
          local fields = redis.call('HGETALL', m)
          local first, ends, dropped = nil, math.huge, false
          for index = 1, #fields, 2 do
            local record = parse(fields[index + 1])
            if fields[index] == 'vary' then
            elseif not record or record.expires <= time then
              redis.call('HDEL', m, fields[index])
              dropped = true
            elseif record.expires < ends then
              first, ends = fields[index], record.expires
            end
          end
          if first and not dropped then redis.call('HDEL', m, first) end
        end

        -- What there is for a request, and who fetches if there is nothing fresh.
        -- keys: m, l. args: vary, variant, token or '' (may not lead), lease, broken token, stale token, inline length
        local function look(keys, args)
          local m, l = keys[1], keys[2]
          local token, lease, broken, stale = args[3], args[4], args[5], args[6]
          local time = now()
          local vary = redis.call('HGET', m, 'vary')
          if vary and vary ~= args[1] then return {'vary', vary, 0, time} end
          local field, stored = 'r:' .. args[2], nil
          local text = redis.call('HGET', m, field)
          if text then
            local record, entries = parse(text), {}
            if record and record.token ~= broken and record.expires > time then
              local last = record.length <= tonumber(args[7]) and '+' or '0-1'
              entries = redis.call('XRANGE', stream(m, record.token), '-', last)
            end
            if #entries == 0 then
              redis.call('HDEL', m, field)
            else
              stored = {record.token, record.length, record.at, record.fresh, record.expires, record.head, entries}
              if record.fresh > time and record.token ~= stale then return {'hit', record.token, 0, time, stored} end
            end
          end
          local held, left = redis.call('GET', l), redis.call('PTTL', l)
          if left < 0 or left > LONGEST_LEASE then held = false end
          if held == '-' or held == '--' then return {'alone', held, left, time, stored} end
          if held and held ~= broken then return {'join', held, left, time, stored} end
          if token == '' then return {'miss', '', 0, time, stored} end
          redis.call('SET', l, token, 'PX', lease)
          return {'lead', token, tonumber(lease), time, stored}
        end

        -- The leader has a head. keys: l, b. args: token, head, lease
        local function head(keys, args)
          local l, b, lease = keys[1], keys[2], tonumber(args[3])
          if redis.call('GET', l) ~= args[1] then return 0 end
          redis.call('XADD', b, '0-1', 'h', args[2], 't', digits(now()))
          redis.call('PEXPIRE', l, digits(lease))
          redis.call('PEXPIRE', b, digits(lease * GRACE))
          return 1
        end

        -- The leader is alive. keys: l, b. args: token, lease
        local function renew(keys, args)
          if redis.call('GET', keys[1]) ~= args[1] then return 0 end
          local lease = tonumber(args[2])
          redis.call('PEXPIRE', keys[1], digits(lease))
          redis.call('PEXPIRE', keys[2], digits(lease * GRACE))
          return 1
        end

        -- The response is complete. A lifetime of 0: it is for those that follow, and no record is kept.
        -- keys: m, l, b. args: token, entries, length, trailers, vary, variant, fresh, lifetime, lease, seal
        local function finish(keys, args)
          local m, l, b, token, vary, field = keys[1], keys[2], keys[3], args[1], args[5], 'r:' .. args[6]
          local lifetime, grace = tonumber(args[8]), tonumber(args[9]) * GRACE
          if redis.call('GET', l) ~= token then return 0 end
          -- Fewer entries than the leader wrote: the engine has lost some, has evicted the stream, or is full. The machines
          -- are not to try the same one after another.
          local first = redis.call('XRANGE', b, '0-1', '0-1')[1]
          local at = first and tonumber(first[2][4])
          if redis.call('XLEN', b) ~= tonumber(args[2]) or not at then
            redis.call('SET', l, '-', 'PX', args[9])
            return -1
          end
          redis.call('DEL', l)
          redis.call('XADD', b, CLOSING, 'e', args[3], 't', args[4], 's', args[10])
          local time = now()
          redis.call('PEXPIREAT', b, digits(math.max(at + lifetime, time) + grace))
          if lifetime <= 0 then return 1 end
          local isNew = redis.call('EXISTS', m) == 0
          local old = parse(redis.call('HGET', m, field))
          if old and old.token ~= token then redis.call('PEXPIRE', stream(m, old.token), digits(grace), 'LT') end
          if vary == '' then redis.call('HDEL', m, 'vary') else redis.call('HSET', m, 'vary', vary) end
          write(m, field, token, tonumber(args[3]), at, tonumber(args[7]), lifetime)
          prune(m, time)
          -- The engine evicts what is seldom read, which the record and the stream are equally often. A stream without a
          -- record is of no use, and large: the record gets a head start. It has gone by now if its lifetime is over.
          if isNew and redis.call('EXISTS', m) == 1 then
            redis.call('RESTORE', m, redis.call('PTTL', m), redis.call('DUMP', m), 'REPLACE', 'FREQ', HEAD_START)
          end
          return 1
        end

        -- A 304 has confirmed the stored response.
        -- keys: m, l. args: token, variant, token of the record, head, fresh, lifetime, lease
        local function freshen(keys, args)
          local m, l, field = keys[1], keys[2], 'r:' .. args[2]
          if redis.call('GET', l) ~= args[1] then return 0 end
          redis.call('DEL', l)
          local record, lifetime = parse(redis.call('HGET', m, field)), tonumber(args[6])
          if not record or record.token ~= args[3] then return -1 end
          local b, at = stream(m, record.token), now()
          if redis.call('PEXPIREAT', b, digits(at + lifetime + tonumber(args[7]) * GRACE)) == 0 then return -1 end
          write(m, field, record.token, record.length, at, tonumber(args[5]), lifetime, args[4])
          return 1
        end

        -- The response is not for the other machines, or for no other request. keys: l. args: token, milliseconds, `-` or `--`
        local function unshare(keys, args)
          if redis.call('GET', keys[1]) ~= args[1] then return 0 end
          redis.call('SET', keys[1], args[3], 'PX', args[2])
          return 1
        end

        -- The leader gives up. Others may read what it wrote for a while. keys: l, b. args: token, lease
        local function release(keys, args)
          if redis.call('GET', keys[1]) ~= args[1] then return 0 end
          redis.call('DEL', keys[1])
          redis.call('PEXPIRE', keys[2], digits(args[2] * GRACE))
          return 1
        end

        -- Begins the log of purges, if there is none. A cursor from before its first entry may have missed purges: no log
        -- begins with the id of an earlier one, even if that was lost in this millisecond.
        local function open(log)
          if redis.call('EXISTS', log) == 1 then return end
          local time = redis.call('TIME')
          local id = digits(time[1] * 1000 + math.floor(time[2] / 1000)) .. '-' .. digits(time[2] % 1000 * 1000000)
          redis.call('XADD', log, id, 'o', '')
        end

        -- keys: log. args: kind, value, soft ('1' or '0'), the most entries
        local function purge(keys, args)
          open(keys[1])
          return redis.call('XADD', keys[1], 'MAXLEN', '~', args[4], '*', 'k', args[1], 'v', args[2], 's', args[3])
        end

        local function precedes(left, right)
          local ms, number = string.match(left, '^(%d+)-(%d+)$')
          local otherMs, otherNumber = string.match(right, '^(%d+)-(%d+)$')
          ms, otherMs = tonumber(ms), tonumber(otherMs)
          return ms < otherMs or ms == otherMs and tonumber(number) < tonumber(otherNumber)
        end

        -- The purges after `after`, or that some of them are lost. keys: log. args: after or '', the most entries
        local function purges(keys, args)
          local log, after = keys[1], args[1]
          open(log)
          local first = redis.call('XRANGE', log, '-', '+', 'COUNT', 1)[1][1]
          local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1][1]
          if after == '' or precedes(after, first) or precedes(last, after) then return {'lost', first, last, {}} end
          return {'purges', first, last, redis.call('XRANGE', log, '(' .. after, '+', 'COUNT', args[2])}
        end

        -- A function may write to a full engine if it writes no content: what it writes is small, and expires or is trimmed.
        local function register(name, callback, flags)
          redis.register_function{function_name = 'co1_' .. name, callback = callback, flags = flags}
        end
        register('look', look, {'allow-oom'})
        register('head', head, {})
        register('renew', renew, {'allow-oom'})
        register('finish', finish, {'allow-oom'})
        register('freshen', freshen, {'allow-oom'})
        register('unshare', unshare, {'allow-oom'})
        register('release', release, {'allow-oom'})
        register('purge', purge, {'allow-oom'})
        register('purges', purges, {'allow-oom'})

        """
}
