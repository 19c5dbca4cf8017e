"""Operations: health, doctor, backup, retention, integrity and the renewal of encryption keys."""
