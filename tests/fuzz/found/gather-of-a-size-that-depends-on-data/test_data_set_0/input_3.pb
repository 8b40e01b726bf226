
Bv53JÀCÁC∂B‹A~AÎC≈B€BC„CÁC.C