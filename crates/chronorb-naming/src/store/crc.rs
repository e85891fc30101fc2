//! CRC32C (Castagnoli), eight bytes at a time.

/// The reflected polynomial.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the checksum of octet `b` followed by `k` zero octets.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut octet = 0;
    while octet < 256 {
        let mut crc = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ ((crc & 1) * POLYNOMIAL);
            bit += 1;
        }
        tables[0][octet] = crc;
        octet += 1;
    }
    let mut at = 256;
    while at < 8 * 256 {
        let crc = tables[at / 256 - 1][at % 256];
        tables[at / 256][at % 256] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
        at += 1;
    }
    tables
}

/// Returns the checksum of the octets that `seed` is the checksum of, followed by `data`; the seed
/// of the first octets is 0.
pub(super) fn crc32c(seed: u32, data: &[u8]) -> u32 {
    let mut crc = !seed;
    let (chunks, rest) = data.as_chunks::<8>();
    for chunk in chunks {
        let word = u64::from_le_bytes(*chunk) ^ u64::from(crc);
        crc = 0;
        for (table, octet) in TABLES.iter().rev().zip(word.to_le_bytes()) {
            crc ^= table[usize::from(octet)];
        }
    }
    for octet in rest {
        crc = (crc >> 8) ^ TABLES[0][usize::from(crc as u8 ^ octet)];
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn the_checksums_of_rfc_3720_are_found() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(0, &[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(0, &ascending), 0x46dd_794e);
        for cut in 0..=32 {
            let first = crc32c(0, &ascending[..cut]);
            assert_eq!(crc32c(first, &ascending[cut..]), 0x46dd_794e);
        }
    }
}
